"""How annotators edit a question into an unambiguous one (AmbigQA, figure 2c)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from whichsense.datasets import Question, SituatedQuestion
from whichsense.evaluation.report.tables import Bars, Cell, Table, percent
from whichsense.text.words import edits, words

WH = frozenset("who whom whose which what when where why how".split())
# Function words that carry no sense of their own. Wh-words are not among them: changing one is an edit that matters.
STOP = frozenset(
    """a an the i me my we our ours you your yours he him his she her hers it its they them their theirs this that these
    those am is are was were be been being have has had having do does did doing and but if or because as until while of
    at by for with about against between into through during before after above below to from up down in on out off over
    under again further then once here there all any both each few more most other some such no nor not only own same so
    than too very s t can will just don should now d ll m o re ve y""".split()
)
_TOP = 25


def grouped(word: str) -> str:
    """Numbers of the same length are one word; so are ordinals and decades.

    >>> [grouped(word) for word in ("2017", "1990s", "3rd", "season")]
    ['####', '####s', '#rd', 'season']
    """
    return (
        "".join("#" if letter.isdigit() else letter for letter in word)
        if word[:1].isdigit()
        else word
    )


def rewrites(question: Question) -> Iterator[str]:
    """Every rewrite that an annotator gave a question."""
    if isinstance(question, SituatedQuestion):
        yield question.rewrite
    for annotation in question.annotations:
        yield from (pair.question for pair in annotation.pairs if pair.question)


def unigram_edits(prompt: str, rewrite: str) -> list[str]:
    """What was taken out (-) and put in (+), without stop words.

    >>> unigram_edits("Who sang the song?", "Which group sang the song in 1990?")
    ['+####', '+group', '+which', '-who']
    """
    deleted, added = edits(words(prompt), words(rewrite))
    return sorted(
        sign + grouped(word)
        for sign, changed in (("-", deleted), ("+", added))
        for word in changed.elements()
        if word not in STOP
    )


def edit_table(
    questions: Sequence[Question], paper: tuple[float, float] | None
) -> tuple[Table, Bars]:
    """The most frequent edits, and how much of all edits the top 100 and 1,000 are.

    An edit counts once for a question, however many of its rewrites have it: only so do the shares come out as in
    the paper, where annotators who rewrite ten seasons would otherwise weigh ten times.
    """
    counts: Counter[str] = Counter()
    for question in questions:
        counts.update(
            {
                edit
                for rewrite in rewrites(question)
                for edit in unigram_edits(question.text, rewrite)
            }
        )
    total, ranked = counts.total(), counts.most_common()
    top = [
        percent(sum(count for _, count in ranked[:size]), total) for size in (100, 1000)
    ]
    at_100, at_1000 = paper or (None, None)
    rows: list[tuple[Cell, ...]] = [
        ("all edits", total, None),
        ("distinct edits", len(ranked), None),
        ("% covered by the top 100", top[0], at_100),
        ("% covered by the top 1,000", top[1], at_1000),
    ]
    bars = tuple((edit, percent(count, total)) for edit, count in ranked[:_TOP])
    return (
        Table(
            "Edits (figure 2c)",
            ("", "here", "paper"),
            tuple(rows),
            "unigrams, each once for a question; stop words removed, numbers as #",
        ),
        Bars(
            f"The {len(bars)} most frequent edits",
            bars,
            "% of edits",
            "- taken out, + put in, # a digit",
        ),
    )


KINDS = (
    "adds a number",
    "changes the wh-word",
    "only adds words",
    "only removes words",
    "replaces words",
    "no change",
)


def kinds_of_edit(prompt: str, rewrite: str) -> list[str]:
    """What kind of edit a rewrite is; the first two may go with any of the others.

    >>> kinds_of_edit("Who sang it?", "Which group sang it in 1990?")
    ['adds a number', 'changes the wh-word', 'replaces words']
    >>> kinds_of_edit("Who sang Hurt?", "Who first sang Hurt?")
    ['only adds words']
    """
    changes = unigram_edits(prompt, rewrite)
    added, deleted = (
        [e[1:] for e in changes if e[0] == "+"],
        [e[1:] for e in changes if e[0] == "-"],
    )
    found = ["adds a number"] if any("#" in word for word in added) else []
    if any(word in WH for word in deleted):
        found.append("changes the wh-word")
    if not changes:
        return [*found, "no change"]
    if not deleted:
        return [*found, "only adds words"]
    return [*found, "only removes words" if not added else "replaces words"]


def kinds_chart(questions: Sequence[Question]) -> Bars:
    """The share of rewrites of each kind."""
    found = [
        kinds_of_edit(question.text, rewrite)
        for question in questions
        for rewrite in rewrites(question)
    ]
    counts = Counter(kind for kinds in found for kind in kinds)
    bars = tuple((kind, percent(counts[kind], len(found))) for kind in KINDS)
    return Bars(
        "Kinds of edits",
        bars,
        "% of rewrites",
        "the first two may go with any other; stop words do not count",
    )
