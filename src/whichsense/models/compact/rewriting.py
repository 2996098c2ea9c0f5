"""For benchmarks: a rewrite for each answer, by the writer or by phrases of the evidence, verified."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, pairwise

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact import writer
from whichsense.models.compact.encoder import LONGEST_QUESTION, Floats, Pieces, question_words
from whichsense.models.compact.rewrite_support import (
    Support,
    Target,
    beside,
    locate,
    support,
    telling,
)
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer_features import (
    Option,
    Rewrite,
    asked_for,
    key,
    of_rewrites,
    together,
)
from whichsense.models.compact.writer import (
    Edit,
    Prompt,
    Surfaces,
    Window,
    answering,
    applied,
    changes,
    rewriting,
)
from whichsense.text.answers import same_answer
from whichsense.text.words import PHRASE_OPENERS, normalize, words
from whichsense.types import FOR_BENCHMARKS, Candidate, Policy, Reading, Span

# Windows of passages around an answer: the evidence in the writer's prompts.

_PER_REWRITE = 2  # windows in the prompt of a rewrite
_PER_QUESTION = (
    4  # windows in the prompt that answers are scored with: it is read again for every question
)


def order_passages(scene: Scene, target: Target) -> list[int]:
    """Return places of the passages that hold the answer, then of the others, best first."""
    passages = range(len(scene.evidence.hits))
    others = [place for place in passages if place not in target.marked]
    return [*target.marked, *others]


def windows(scene: Scene, target: Target) -> list[Window]:
    """Return the windows for a rewrite: of the answer's own passages first, then of the best of the others."""
    places = order_passages(scene, target)[:_PER_REWRITE]
    return [_window(scene, place, target) for place in places]


def _window(scene: Scene, place: int, target: Target) -> Window:
    pair = scene.evidence.pairs[place]
    (title, title_end), (text, text_end) = pair.title, pair.text
    # The answer's first span in the text; (0, 0) relative to the text if there is none.
    first = text
    end = text
    for span in target.marked.get(place, ()):
        if span[0] >= text:
            first, end = span
            break
    return Window(pair.ids[title:title_end], pair.ids[text:text_end], first - text, end - text)


def likelihoods(scene: Scene, questions: Sequence[str], targets: Sequence[Target]) -> Floats:
    """Return the log probability of each answer to each question, given a window for each answer (questions × answers):
    REFUEL's verification score."""
    shared: list[Window] = []
    for target in targets:
        shared += windows(scene, target)[:1]
    model = scene.compact.model
    prompts = []
    for question in questions:
        ids = model.tokenizer.ids(question, LONGEST_QUESTION)
        prompts.append(answering(ids, shared[:_PER_QUESTION]))
    outputs = [scene.tokens(target.answer) for target in targets]
    frequent = model.config.get("frequent", ())
    scores = writer.likelihoods(scene.compact.writer, prompts, outputs, frequent)
    return np.array(scores, dtype=np.float32)


# Rewrites from the evidence itself: the question with a phrase that stands beside one answer and
# beside no other.
#
# Phrases are years, what a title has in brackets (Dune (1984 film)), and phrases such as "at
# Wimbledon" or "in the United States" from the sentences that hold the answer.

_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
# The brackets of a title whose name several things have: Dune (1984 film).
_BRACKETS = re.compile(r" \([^()]+\)\s*$")
_NAME = r"[A-Z0-9][\w'’-]*"
_PHRASE = re.compile(
    rf"\b(?:in|at|for|from|on|during|as|by|with)\s+(?:the\s+)?{_NAME}(?:\s+(?:of\s+(?:the\s+)?)?{_NAME}){{0,4}}"
)
# Mean EDIT-F1 of such a phrase behind the question, over 3,000 pairs of AmbigNQ train, by what is asked for ("": all);
# the most promising are tried. Brackets have .11 for "who"; they count as for all questions there, because they name
# the reading best.
_WORTH = {
    "brackets": {"": 0.16, "when": 0.24},
    "year": {"": 0.12, "which": 0.20, "who": 0.13},
    "phrase": {"": 0.11, "who": 0.12},
}
_RANK_PENALTY = 0.04  # for each passage that supports the answer better
_MOST = 4  # rewrites for each answer


def phrase_rewrites(
    scene: Scene, targets: Sequence[Target], told: Sequence[Support]
) -> list[list[Option]]:
    """Return for each answer the rewrites with phrases of its evidence, the most promising first."""
    around = [beside(scene, target) for target in targets]
    rewrites = []
    for place, supported in enumerate(told):
        others = chain(around[:place], around[place + 1 :])
        texts = chain.from_iterable(chain.from_iterable(others))
        elsewhere = _spaced_words(" ".join(texts))
        best: dict[str, tuple[float, Option]] = {}
        for phrase, worth in _phrases(scene, around[place]):
            if not _is_usable(scene, phrase, elsewhere, supported):
                continue
            option = _option(scene.evidence.question, phrase)
            if option is not None:
                # Of two phrases with the same words the first one stays.
                best.setdefault(key(phrase), (worth, option))
        ranked = sorted(best.values(), key=lambda item: -item[0])
        rewrites.append([option for _, option in ranked[:_MOST]])
    return rewrites


def _phrases(scene: Scene, around: Sequence[Sequence[str]]) -> Iterator[tuple[str, float]]:
    """Yield the phrases beside an answer and their worth, which is less in passages that support the answer less."""
    question = scene.evidence.question
    asked = asked_for(question)
    worth = {kind: values.get(asked, values[""]) for kind, values in _WORTH.items()}
    for rank, (title, *sentences) in enumerate(around):
        penalty = _RANK_PENALTY * rank
        name = _BRACKETS.sub("", title)
        is_asked = _spaced_words(name) in _spaced_words(question)
        if _BRACKETS.search(title) and is_asked:
            yield title, worth["brackets"] - penalty
        for sentence in sentences:
            for match in _PHRASE.finditer(sentence):
                yield match[0], worth["phrase"] - penalty
            if asked == "when":
                continue
            for year in _YEAR.findall(sentence):
                yield f"in {year}", worth["year"] - penalty


def _is_usable(scene: Scene, phrase: str, elsewhere: str, supported: Support) -> bool:
    """Return whether a phrase tells the answer from the others, adds to the question, and is supported."""
    return (
        _spaced_words(phrase) not in elsewhere
        and _adds_word(scene.evidence.question, phrase)
        and supported.holds(phrase)
    )


def _adds_word(question: str, phrase: str) -> bool:
    """Return whether a phrase has a word, behind its preposition, that the question does not have."""
    known = {*words(question), "the"}
    return any(word not in known for word in words(phrase)[1:])


def _option(question: str, phrase: str) -> Option | None:
    """Return the question with the phrase; None if that has the same words as the question."""
    rewrite = insert_phrase(question, phrase)
    if key(rewrite) == key(question):
        return None
    return Option(rewrite, phrase=True)


def insert_phrase(question: str, phrase: str) -> str:
    """Append a phrase to the question; insert a title's brackets behind the name that they belong to.

    >>> insert_phrase("Who wrote dune?", "in 1984"), insert_phrase("Who wrote dune first?", "Dune (novel)")
    ('Who wrote dune in 1984?', 'Who wrote dune (novel) first?')
    >>> insert_phrase("Who played spider man?", "Spider-Man (2002 film)")
    'Who played spider man (2002 film)?'
    """
    bare = question.strip().rstrip("?").rstrip()
    match = _BRACKETS.search(phrase)
    if not match:
        return f"{bare} {phrase}?"
    end = _end_of(phrase[: match.start()], bare)
    if end is None:
        return question
    return f"{bare[:end]}{match[0].rstrip()}{bare[end:]}?"


def _end_of(name: str, question: str) -> int | None:
    """Return the character at which a name ends in a question: spelt as in the title, or else with other
    punctuation."""
    for pattern in (re.escape(name), r"\W+".join(words(name))):
        match = re.search(rf"\b{pattern}(?!\w)", question, re.IGNORECASE)
        if match:
            return match.end()
    return None


def _spaced_words(text: str) -> str:
    """Return the words of a text with a space before, between and behind them, to search for whole words."""
    return f" {' '.join(words(text))} "


# Rewrites for each answer: samples of the writer and phrases of the evidence, filtered by support and
# scored.

_SPELLING_PASSAGES = 3  # passages that words take their spelling from
# Samples for each answer, and for all answers together; _FEWEST even for very many answers.
_SAMPLES = 40
_MOST_SAMPLES = 120
_FEWEST_SAMPLES = 4
_LONGER = 10  # word pieces: 97% of annotators' rewrites are not longer than the question by more
_MOST_REWRITES = 8  # for each answer, best first
_APART_BONUS = 0.02  # if a rewrite has a word that the evidence of no other answer has
_TextEdit = tuple[Edit, str]
"""An edit and the text that it inserts."""


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """For one answer: the rewrites that may be given, and all samples of the writer."""

    options: tuple[Option, ...]
    drawn: tuple[str, ...]


def rewrites(
    scene: Scene, targets: Sequence[Target], told: Sequence[Support]
) -> list[list[Rewrite]]:
    """Return several rewrites for each answer, best first; none if nothing fits. `told` is the support of each
    answer."""
    ranked = []
    for own, some in zip(told, written(scene, targets, told), strict=True):
        others = [other for other in told if other is not own]
        scored = sorted(_score(scene, own, others, some), key=lambda rewrite: -rewrite.score)
        ranked.append(scored[:_MOST_REWRITES])
    return ranked


def _score(
    scene: Scene, own: Support, others: Sequence[Support], some: RewriteOptions
) -> list[Rewrite]:
    features = of_rewrites(scene.evidence.question, some.options, some.drawn)
    scores = scene.compact.scorer.rewrite.values(features)
    scored = []
    for option, score in zip(some.options, scores, strict=True):
        apart = _APART_BONUS * own.tells_apart(option.question, others)
        scored.append(Rewrite(option.question, score + apart))
    return scored


def written(
    scene: Scene, targets: Sequence[Target], told: Sequence[Support]
) -> list[RewriteOptions]:
    """Everything that may be given for each answer."""
    phrases = phrase_rewrites(scene, targets, told)
    count = max(_FEWEST_SAMPLES, min(_SAMPLES, _MOST_SAMPLES // len(targets)))
    samples = draw_rewrites(scene, targets, told, count)
    return [_join_options(*both) for both in zip(phrases, samples, strict=True)]


def draw_rewrites(
    scene: Scene, targets: Sequence[Target], told: Sequence[Support], count: int
) -> list[RewriteOptions]:
    """Draw `count` samples of the writer for each answer, and those of them that the evidence supports."""
    question = list(chain.from_iterable(_asked(scene)))
    if not question or len(question) > LONGEST_QUESTION:
        return [RewriteOptions((), ()) for _ in targets]
    prompts = []
    pieces = []  # what may be written for each answer
    for target, supported in zip(targets, told, strict=True):
        prompts.append(_prompt(scene, target, targets, question))
        pieces.append(np.append(supported.pieces, question))
    longest = len(question) + _LONGER
    samples = writer.drawn(scene.compact.writer, prompts, pieces, count, longest=longest)
    every = zip(targets, told, samples, strict=True)
    return [_collect_options(scene, *each) for each in every]


def _asked(scene: Scene) -> list[list[int]]:
    """Return the word pieces of each of the question's words."""
    tokenizer = scene.compact.model.tokenizer
    return [tokenizer.ids(word) for word in question_words(scene.evidence.question)]


def _join_options(phrases: Sequence[Option], drawn: RewriteOptions) -> RewriteOptions:
    """Phrases of the evidence beside the writer's rewrites. One that both give counts as the writer's."""
    options = {key(option.question): option for option in phrases}
    for option in drawn.options:
        phrase = options.get(key(option.question), option)
        both = replace(phrase, likely=option.likely, phrase=False)
        options[key(option.question)] = both
    return RewriteOptions(tuple(options.values()), drawn.drawn)


def _prompt(
    scene: Scene, target: Target, targets: Sequence[Target], question: Sequence[int]
) -> Prompt:
    others = [scene.tokens(other.answer) for other in targets if other is not target]
    return rewriting(question, scene.tokens(target.answer), others, windows(scene, target))


def _collect_options(
    scene: Scene, target: Target, supported: Support, samples: Sequence[writer.Sample]
) -> RewriteOptions:
    """Return the samples for an answer as text, and the options among them."""
    question = scene.evidence.question
    vocabulary = scene.compact.model.words.vocabulary
    asked = _asked(scene)
    surfaces = Surfaces(_spelling_texts(scene, target), vocabulary)
    options: dict[str, Option] = {}
    texts: list[str] = []
    for sample in samples:
        found = changes(asked, sample.tokens, vocabulary)
        edits = [(edit, surfaces.written(edit.inserted)) for edit in found]
        texts.append(applied(question_words(question), edits))
        for text in _supported_rewrites(question, edits, supported):
            known = options.get(key(text))
            if known is None or known.likely < sample.each:
                # Of texts with the same words the first one stays.
                option = known or Option(text)
                options[key(text)] = replace(option, likely=sample.each)
    options.pop(key(question), None)
    return RewriteOptions(tuple(options.values()), tuple(texts))


def _supported_rewrites(
    question: str, edits: Sequence[_TextEdit], supported: Support
) -> Iterator[str]:
    """Yield the question with all edits, and with each alone, which often suffices: those that are fluent and
    supported."""
    each = [[edit] for edit in edits] if len(edits) > 1 else []
    for some in (edits, *each):
        text = applied(question_words(question), some)
        if _is_fluent(text, question) and all(supported.holds(said) for _, said in some):
            yield text


def _is_fluent(text: str, question: str) -> bool:
    """Return whether no word is doubled, no trigram comes again, no quotes or brackets are new, and the text does
    not end within a phrase. What the question itself has is allowed.

    >>> good, bad = ("Who sang it?", "In which film?"), ("Who sang sang it?", 'Who sang "it?', "Who sang it in the?")
    >>> [_is_fluent(text, "Who sang it?") for text in (*good, *bad)]
    [True, True, False, False, False]
    """
    after = words(text)
    before = words(question)
    if any(first == second for first, second in pairwise(after)):
        return False
    trigrams = list(zip(after, after[1:], after[2:], strict=False))
    if len(set(trigrams)) < len(trigrams):
        return False
    if any(text.count(sign) > question.count(sign) for sign in '"('):
        return False
    new_end = after[-1:] != before[-1:]
    return not (new_end and after and after[-1] in PHRASE_OPENERS)


def _spelling_texts(scene: Scene, target: Target) -> list[tuple[str, Pieces]]:
    """Titles and texts with their word pieces: of the answer's own passages first, then of the best of the others."""
    texts = []
    for place in order_passages(scene, target)[:_SPELLING_PASSAGES]:
        pair = scene.evidence.pairs[place]
        passage = scene.evidence.passages[place]
        for (first, last), text in ((pair.title, passage.title), (pair.text, passage.text)):
            part = slice(first, last)
            pieces = Pieces(pair.ids[part], pair.starts[part], pair.ends[part])
            texts.append((text, pieces))
    return texts


# From answers to readings: a rewrite for each, verified over the same states. New answers join,
# rejected ones go.

_SPANS = 5  # best spans of a candidate, one a passage
_RIVALS = 2  # other candidates that the rewrite of an only answer is told apart from


def candidates_of(scene: Scene, places: Sequence[int]) -> list[Candidate]:
    """Answers of a scene as candidates: probability, and the best span of each passage."""
    candidates = []
    for place in places:
        answer = scene.answers[place]
        spans: dict[int, Span] = {}
        for mention in answer.mentions:
            # A mention in a title has no span in the text.
            start, end = (0, 0) if mention.in_title else (mention.start, mention.end)
            passage = scene.evidence.passages[mention.passage]
            # Mentions come by support: the first of a passage is its best.
            spans.setdefault(mention.passage, Span(passage, start, end, mention.mass))
        best = sorted(spans.values(), key=lambda span: -span.score)[:_SPANS]
        probability = scene.probabilities[place]
        candidates.append(Candidate(answer.text, probability, tuple(best)))
    return candidates


def rewrite_answers(scene: Scene, answers: Sequence[Candidate]) -> list[Reading]:
    """Return a reading for each answer, no two rewrites alike, for a benchmark: the clumsiest edit is nearer to an
    annotator's rewrite than none, and questions without one are not compared."""
    if len(answers) < 2:
        return [_rewrite_only_answer(scene, answer) for answer in answers]
    targets = [locate(scene, answer) for answer in answers]
    chosen = _choose_rewrites(scene, targets)
    used = {key(rewrite.question) for rewrite in filter(None, chosen)}
    readings = []
    for answer, target, rewrite in zip(answers, targets, chosen, strict=True):
        written = _by_title(scene, target, answer, used) if rewrite is None else rewrite.question
        if written is not None:
            used.add(key(written))
            readings.append(_reading(answer, written))
    return readings or [_reading(answers[0], scene.evidence.question)]


def _reading(answer: Candidate, question: str) -> Reading:
    return Reading(question, answer.answer, answer.spans, answer.score)


def _rewrite_only_answer(scene: Scene, answer: Candidate) -> Reading:
    """Return the reading of an only answer: its rewrite sets it apart from the likeliest other candidates."""
    others = [
        place for place in scene.apart if not same_answer(scene.answers[place].text, answer.answer)
    ]
    rivals = candidates_of(scene, others[:_RIVALS])
    targets = [locate(scene, candidate) for candidate in (answer, *rivals)]
    best = _choose_rewrites(scene, targets)[0]
    return _reading(answer, best.question if best else scene.evidence.question)


def _choose_rewrites(scene: Scene, targets: Sequence[Target]) -> list[Rewrite | None]:
    """Return the best set of rewrites, one for each answer; None where nothing fits."""
    supports = [support(scene, target, policy=FOR_BENCHMARKS) for target in targets]
    return together(rewrites(scene, targets, supports))


def _by_title(scene: Scene, wanted: Target, answer: Candidate, used: set[str]) -> str | None:
    """Return the question with the title of a passage that holds the answer, for an answer without a rewrite. Titles
    with the answer's name are skipped."""
    question = scene.evidence.question.strip().rstrip("?")
    name = normalize(answer.answer)
    for place in wanted.marked:
        title = scene.evidence.passages[place].title
        written = f"{question}, according to “{title}”?"
        has_name = name in normalize(title)
        if title and not has_name and key(written) not in used:
            return written
    # Only an answer that is nowhere in the evidence may leave the question unchanged.
    if not wanted.marked and key(question) not in used:
        return f"{question}?"
    return None


def verify_readings(scene: Scene, readings: Sequence[Reading], policy: Policy) -> list[Reading]:
    """Return the readings that hold when their rewrites are asked again, with those of answers that the rewrites
    prefer."""
    if not readings:
        return []
    least = scene.judge.join_over if policy.threshold is None else policy.threshold
    held, joining = ask_again(scene, readings, least)
    current = list(readings)
    if joining:
        answers = [*map(_candidate, readings), *candidates_of(scene, joining)]
        current = rewrite_answers(scene, answers)
        held, _ = ask_again(scene, current, least)
    best_first = sorted(zip(current, held, strict=True), key=lambda pair: -pair[0].confidence)
    verified = [reading for reading, holds in best_first if holds] or [best_first[0][0]]
    return [replace(reading, evidence=telling(reading.evidence)) for reading in verified]


def _candidate(reading: Reading) -> Candidate:
    return Candidate(reading.answer, reading.confidence, reading.evidence)


def ask_again(
    scene: Scene, readings: Sequence[Reading], least: float
) -> tuple[list[bool], list[int]]:
    """Ask each rewrite again: whether it holds its own answer, and which other candidates of at least that probability
    some rewrite prefers.

    A rewrite holds its answer unless it makes another given answer much likelier beside it (`holds_over`) than the
    original question does: an answer that is likely for every question is no reason to drop the others. The original
    question brings no new answers: what it prefers is known already.
    """
    question = scene.evidence.question
    questions = [reading.question for reading in readings]
    rewritten = np.array([text != question for text in questions])
    newcomers = _other_answers(scene, readings, least)
    if len(readings) == 1 and not (newcomers and rewritten[0]):
        return [True], []  # no other outcome is possible
    answers = [*map(_candidate, readings), *candidates_of(scene, newcomers)]
    targets = [locate(scene, answer) for answer in answers]
    # Log likelihoods: (readings and the question itself) × (given answers and newcomers).
    *rows, before = likelihoods(scene, [*questions, question], targets)
    after, count = np.stack(rows), len(readings)
    held = _holds_own_answer(after[:, :count], before[:count], scene)
    joins = _is_preferred(after[:, :count], after[:, count:], rewritten)
    return held.tolist(), list(compress(newcomers, joins.tolist()))


def _other_answers(scene: Scene, readings: Sequence[Reading], least: float) -> list[int]:
    known = {normalize(reading.answer) for reading in readings}
    return [
        place
        for place in scene.apart
        if scene.probabilities[place] >= least and normalize(scene.answers[place].text) not in known
    ]


def _holds_own_answer(after: Floats, before: Floats, scene: Scene) -> NDArray[np.bool_]:
    """Return whether each rewrite gains as much for its own answer as for any other. `after` is rewrites × answers."""
    gain = after - before
    own = np.diagonal(gain).copy()
    np.fill_diagonal(gain, -np.inf)
    margin = own - gain.max(axis=1)
    return np.asarray(margin >= scene.compact.scorer.holds_over)


def _is_preferred(given: Floats, new: Floats, rewritten: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether some rewrite finds a newcomer likelier than all given answers and all other newcomers.

    `given`: rewrites × answers; `new`: rewrites × newcomers.
    """
    if not new.shape[1]:
        return np.zeros(0, dtype=bool)
    beats_given = new > given.max(axis=1, keepdims=True)
    is_best_newcomer = new == new.max(axis=1, keepdims=True)
    preferred = beats_given & is_best_newcomer & rewritten[:, None]
    return np.asarray(preferred.any(axis=0))
