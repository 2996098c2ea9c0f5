"""How annotators edit a question into an unambiguous one (AmbigQA, figure 2c)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from whichsense.datasets import Question, SituatedQuestion
from whichsense.evaluation.report.tables import Bars, Cell, Table, percent
from whichsense.text.function_words import EDIT_STOP_WORDS, WH_WORDS
from whichsense.text.words import word_edits, words

_TOP = 25  # edits in the chart
_KINDS = (
    "adds a number",
    "changes the wh-word",
    "only adds words",
    "only removes words",
    "replaces words",
    "no change",
)


def iterate_rewrites(question: Question) -> Iterator[str]:
    """Every rewrite that an annotator gave a question."""
    if isinstance(question, SituatedQuestion):
        yield question.rewrite
    for annotation in question.annotations:
        for pair in annotation.pairs:
            if pair.question:
                yield pair.question


def _mask_digits(word: str) -> str:
    """Numbers of the same length become one word; so do ordinals and decades.

    >>> [_mask_digits(word) for word in ("2017", "1990s", "3rd", "season")]
    ['####', '####s', '#rd', 'season']
    """
    if not word[:1].isdigit():
        return word
    masked = ""
    for letter in word:
        masked += "#" if letter.isdigit() else letter
    return masked


def _unigram_edits(prompt: str, rewrite: str) -> list[str]:
    """The removed (-) and added (+) words, without stop words.

    >>> _unigram_edits("Who sang the song?", "Which group sang the song in 1990?")
    ['+####', '+group', '+which', '-who']
    """
    deleted, added = word_edits(words(prompt), words(rewrite))
    signed = []
    for sign, changed in (("-", deleted), ("+", added)):
        for word in changed.elements():
            if word not in EDIT_STOP_WORDS:
                signed.append(sign + _mask_digits(word))
    return sorted(signed)


def count_edits(
    questions: Sequence[Question], paper: tuple[float, float] | None
) -> tuple[Table, Bars]:
    """The most frequent edits, and the share of all edits that the top 100 and 1,000 are.

    An edit counts once for a question, however many of its rewrites have it: only then do the shares equal the
    paper's. Otherwise an annotator who rewrites ten seasons would weigh ten times.
    """
    counts: Counter[str] = Counter()
    for question in questions:
        distinct: set[str] = set()
        for rewrite in iterate_rewrites(question):
            distinct.update(_unigram_edits(question.text, rewrite))
        counts.update(sorted(distinct))  # sorted: ties rank alike in every run
    total = counts.total()
    ranked = counts.most_common()
    covered = []  # % of all edits, by the top 100 and the top 1,000
    for size in (100, 1000):
        top = dict(ranked[:size])
        covered.append(percent(sum(top.values()), total))
    at_100, at_1000 = paper or (None, None)
    rows: list[tuple[Cell, ...]] = [
        ("all edits", total, None),
        ("distinct edits", len(ranked), None),
        ("% covered by the top 100", covered[0], at_100),
        ("% covered by the top 1,000", covered[1], at_1000),
    ]
    table = Table(
        "Edits (figure 2c)",
        ("", "here", "paper"),
        tuple(rows),
        "unigrams, each once for a question; stop words removed, numbers as #",
    )
    bars = tuple((edit, percent(count, total)) for edit, count in ranked[:_TOP])
    chart = Bars(
        f"The {len(bars)} most frequent edits",
        bars,
        "% of edits",
        "- taken out, + put in, # a digit",
    )
    return table, chart


def _classify_edit(prompt: str, rewrite: str) -> list[str]:
    """The kinds of an edit; the first two can accompany any of the others.

    >>> _classify_edit("Who sang it?", "Which group sang it in 1990?")
    ['adds a number', 'changes the wh-word', 'replaces words']
    >>> _classify_edit("Who sang Hurt?", "Who first sang Hurt?")
    ['only adds words']
    """
    changes = _unigram_edits(prompt, rewrite)
    added: list[str] = []
    deleted: list[str] = []
    for change in changes:
        same_sign = added if change[0] == "+" else deleted
        same_sign.append(change[1:])
    kinds = []
    if "#" in "".join(added):
        kinds.append("adds a number")
    if not WH_WORDS.isdisjoint(deleted):
        kinds.append("changes the wh-word")
    if not changes:
        kinds.append("no change")
    elif not deleted:
        kinds.append("only adds words")
    elif not added:
        kinds.append("only removes words")
    else:
        kinds.append("replaces words")
    return kinds


def count_edit_kinds(questions: Sequence[Question]) -> Bars:
    """The share of rewrites of each kind."""
    counts: Counter[str] = Counter()
    total = 0
    for question in questions:
        for rewrite in iterate_rewrites(question):
            counts.update(_classify_edit(question.text, rewrite))
            total += 1
    bars = [(kind, percent(counts[kind], total)) for kind in _KINDS]
    return Bars(
        "Kinds of edits",
        tuple(bars),
        "% of rewrites",
        "the first two may go with any other; stop words do not count",
    )
