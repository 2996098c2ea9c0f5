"""What the scorer knows of an answer and of a question, and the choice among rewrites."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from whichsense.models.compact.candidates import Answer, Evidence, Mention, passage_probabilities
from whichsense.models.compact.encoder import Floats
from whichsense.text.answers import parse_answer
from whichsense.text.overlap import edit_f1, sentence_bleu
from whichsense.text.ptb import tokenize_question as compared
from whichsense.text.words import (
    GENERIC_WORDS,
    SMALL_WORDS,
    SURROUNDING_WORDS,
    porter_stem,
    sentence_at,
    words,
)

# What the features look at: a question with its candidates, one of the candidates, and the question
# as a whole.
#
# A value that several features or candidates share is computed once here.

LEAST = 1e-6  # of a probability, so that its logarithm is finite
ANSWER_KINDS = ("year", "date", "number", "name", "other")
_ASKED = {
    "who": r"who|whom|whose",
    "when": r"when|what (?:year|date|day|month|time)|which (?:year|date)|in what year",
    "where": r"where|(?:what|which) (?:country|city|state|place|town|county|continent)",
    "how many": r"how (?:many|much|old|long|far|tall|big|high|fast|deep|often)|what (?:number|percentage|age)",
    "which": r"which|what|name",
}
QUESTION_KINDS = (*_ASKED, "other")
_MENTIONS = 4  # best mentions whose surroundings are compared with the question


def _kind_of(answer: str) -> str:
    """Classify an answer as year, date, number, name or other.

    >>> [_kind_of(answer) for answer in ("1953", "29 May 1953", "twelve", "8,849 m", "Edmund Hillary", "by boat")]
    ['year', 'date', 'number', 'number', 'name', 'other']
    """
    parsed = parse_answer(answer)
    if parsed.date:
        is_year = parsed.date.year is not None and parsed.date.known_parts == 1
        return "year" if is_year else "date"
    if any(parsed.capitals):
        return "name"
    return "number" if parsed.numbers else "other"


def asked_for(question: str) -> str:
    """Classify a question by its first question word.

    >>> [asked_for(question) for question in ("Who wrote it?", "In what year did it end?", "how many are there", "so")]
    ['who', 'when', 'how many', 'other']
    """
    lowered = question.lower()
    best = "other"
    first = len(lowered)
    for kind, pattern in _ASKED.items():
        match = re.search(rf"\b(?:{pattern})\b", lowered)
        # Of two kinds that begin at one place, the one listed first wins.
        if match and match.start() < first:
            best = kind
            first = match.start()
    return best


@dataclass(frozen=True)
class SceneView:
    """A question's evidence and its candidates, most supported first."""

    evidence: Evidence
    answers: Sequence[Answer]

    @cached_property
    def _probabilities(self) -> tuple[Floats, float]:
        return passage_probabilities(self.evidence.read)

    @property
    def shares(self) -> Floats:
        """The probability of each passage to hold the answer."""
        return self._probabilities[0]

    @property
    def null(self) -> float:
        """The probability that no passage holds the answer."""
        return self._probabilities[1]

    @cached_property
    def total_mass(self) -> float:
        return sum(answer.mass for answer in self.answers) or LEAST

    @cached_property
    def best_mass(self) -> float:
        return max(answer.mass for answer in self.answers) or LEAST

    @cached_property
    def mean_ambiguity(self) -> float:
        return float(np.mean([one.ambiguity for one in self.evidence.read]))

    @cached_property
    def question_kind(self) -> str:
        return asked_for(self.evidence.question)

    @cached_property
    def question_words(self) -> set[str]:
        """The question's words without stop words."""
        return set(words(self.evidence.question)) - SURROUNDING_WORDS

    @cached_property
    def texts(self) -> list[str]:
        """Each passage's text as its words, with a space before, between and behind them."""
        texts = []
        for passage in self.evidence.passages:
            spaced = " ".join(words(passage.text))
            texts.append(f" {spaced} ")
        return texts

    @cached_property
    def titles(self) -> set[str]:
        """The distinct titles of the passages."""
        return {passage.title for passage in self.evidence.passages}

    def count_titles(self) -> int:
        return len(self.titles)


class AnswerView:
    """One candidate of a context."""

    def __init__(self, place: int, context: SceneView) -> None:
        self.place = place
        self.context = context
        self.evidence = context.evidence
        self.answer = context.answers[place]
        self.mentions = self.answer.mentions
        self.better = context.answers[:place]
        self.words = words(self.answer.text)
        self.question_words = context.question_words
        self.question_kind = context.question_kind
        self.answer_kind = _kind_of(self.answer.text)
        # Places of the passages with a mention, in reading order; and (rank, score) of each in the search.
        self.passages = sorted({mention.passage for mention in self.mentions})
        self.searched = [self.evidence.found[place] for place in self.passages]

    def count_titles(self) -> int:
        titles = set()
        for place in self.passages:
            titles.add(self.evidence.passages[place].title)
        return len(titles)

    def best_relevance(self) -> float:
        return max(self.evidence.read[place].relevance for place in self.passages)

    def count_holding(self) -> int:
        """The number of passages whose text contains the answer's words in a row."""
        answer = f" {' '.join(self.words)} "
        count = 0
        for text in self.context.texts:
            if answer in text:
                count += 1
        return count

    def shares_sentence(self) -> bool:
        """Whether the best mention shares its sentence with that of a better candidate, without overlap."""
        best = self.mentions[0]
        sentence = self._sentence(best)
        for answer in self.better:
            other = answer.mentions[0]
            same_text = (other.passage, other.in_title) == (best.passage, best.in_title)
            if not same_text or other.overlaps(best):
                continue
            if self._sentence(other) == sentence:
                return True
        return False

    @cached_property
    def question_overlap(self) -> tuple[float, float]:
        """The share of the question's stems in a mention's sentence and title, and of a title's stems in the question:
        the highest of each over the best mentions."""
        # Without a content word the question counts as one stem that no text has.
        question = set(map(porter_stem, self.question_words)) or {""}
        in_sentence = 0.0
        in_title = 0.0
        for mention in self.mentions[:_MENTIONS]:
            title = _stems(self.evidence.passages[mention.passage].title)
            around = title
            if not mention.in_title:
                around = title | _stems(self._sentence(mention))
            in_sentence = max(in_sentence, len(question & around) / len(question))
            in_title = max(in_title, len(question & title) / max(len(title), 1))
        return in_sentence, in_title

    def _sentence(self, mention: Mention) -> str:
        text = self.evidence.passages[mention.passage].text
        start, end = sentence_at(text, mention.start)
        return text[start:end]


class QuestionView:
    """A question as a whole, with the probabilities of its candidates and the log odds of the two probes."""

    def __init__(
        self, context: SceneView, probabilities: Sequence[float], wording: float, alone: float
    ) -> None:
        self.context = context
        self.evidence = context.evidence
        self.question_kind = context.question_kind
        self.ordered = [*sorted(probabilities, reverse=True), 0.0, 0.0, 0.0]
        self.masses = np.array([answer.mass for answer in context.answers]) + LEAST
        self.wording = wording
        self.alone = alone

    def entropy(self) -> float:
        """Of the candidates' masses, in nats."""
        shares = self.masses / self.masses.sum()
        return float(-(shares * np.log(shares)).sum())


def _stems(text: str) -> set[str]:
    return set(map(porter_stem, words(text)))


# The named features of candidates, corpora and questions: the input of the learned scorer.
#
# Each feature is one row of a table, name → function of a view. To add or change one, edit its row
# and fit the scorer again: the scorer's file names the features that it was fitted on.

_View = TypeVar("_View")
_FEW = 6  # passages: even a small corpus has about this many on a question's topic


def of_answer(place: int, context: SceneView) -> dict[str, float]:
    """The features of the candidate at a place of the context's list."""
    return _evaluate(_ANSWER, AnswerView(place, context))


def of_corpus(context: SceneView) -> dict[str, float]:
    """The features of a corpus, from the passages retrieved for a question, independent of the candidates."""
    return _evaluate(_CORPUS, context)


def of_question(
    context: SceneView, probabilities: Sequence[float], wording: float = 0.0, alone: float = 0.0
) -> dict[str, float]:
    """The features of a question as a whole. `probabilities` are those of its candidates; `wording` and `alone` are the
    log odds of ambiguity by the n-gram probe and by the state probe."""
    view = QuestionView(context, probabilities, wording, alone)
    return of_corpus(context) | _evaluate(_QUESTION, view)


def _evaluate(features: Mapping[str, Callable[[_View], float]], view: _View) -> dict[str, float]:
    """The value of each feature of a table, in the table's order."""
    values = {}
    for name, feature in features.items():
        values[name] = feature(view)
    return values


def _log(value: float) -> float:
    return math.log(max(value, LEAST))


def _search_score(view: AnswerView) -> float:
    """The best search score of the answer's passages, relative to the best of all passages."""
    top = max((score for _, score in view.evidence.found), default=1.0) or 1.0
    return max(score for _, score in view.searched) / top


def _share_in_question(view: AnswerView) -> float:
    """The share of the answer's words that the question has."""
    shared = 0
    for word in view.words:
        if word in view.question_words:
            shared += 1
    return shared / max(len(view.words), 1)


def _mean_search_score(context: SceneView) -> float:
    """The mean search score relative to the best. It is near 1 in a large corpus, where many passages fit."""
    scores = [score for _, score in context.evidence.found]
    return float(np.mean(scores)) / (max(scores) or 1.0)


def _relevance_drop(context: SceneView) -> float:
    """How far relevance drops from the best passage to the sixth. It drops far where few are about the question."""
    relevance = sorted((one.relevance for one in context.evidence.read), reverse=True)
    last = min(_FEW, len(relevance)) - 1
    return relevance[0] - relevance[last]


def _namesakes(view: QuestionView) -> int:
    """The number of titles that another title equals up to its brackets, such as Dune (1984 film)."""
    counts: Counter[str] = Counter()
    for title in view.context.titles:
        counts[re.sub(r"\s*\(.*\)$", "", title).lower()] += 1
    namesakes = 0
    for count in counts.values():
        if count > 1:
            namesakes += count
    return namesakes


def _has_year(view: QuestionView) -> bool:
    return bool(re.search(r"\b\d{4}\b", view.evidence.question))


def _is_kind(question: str, answer: str, view: AnswerView) -> float:
    return float((question, answer) == (view.question_kind, view.answer_kind))


def _is_question_kind(kind: str, view: QuestionView) -> float:
    return float(kind == view.question_kind)


_ANSWER: dict[str, Callable[[AnswerView], float]] = {
    # Probability that the reader gives the answer, in sum and at its best.
    "mass": lambda view: _log(view.answer.mass),
    "best_mention": lambda view: _log(max(one.mass for one in view.mentions)),
    "best_span": lambda view: _log(max(one.probability for one in view.mentions)),
    "support": lambda view: _log(view.answer.support),
    "verdict": lambda view: view.mentions[0].verdict,
    "best_verdict": lambda view: max(one.verdict for one in view.mentions),
    "left": lambda view: _log(max(one.left for one in view.mentions)),
    # Beside the question's other candidates.
    "overlaps": lambda view: view.answer.overlap(view.better),
    "beside_better": lambda view: float(view.shares_sentence()),
    "share": lambda view: view.answer.mass / view.context.total_mass,
    "beside_best": lambda view: _log(view.answer.mass / view.context.best_mass),
    "rank": lambda view: math.log1p(view.place),
    # The passages that hold it.
    "passages": lambda view: math.log(len(view.passages)),
    "titles": lambda view: math.log(view.count_titles()),
    "best_relevance": lambda view: view.best_relevance(),
    "read_rank": lambda view: math.log1p(view.passages[0]),
    "search_rank": lambda view: math.log1p(min(rank for rank, _ in view.searched)),
    "search_score": _search_score,
    "null": lambda view: _log(view.context.null),
    # Its words.
    "length": lambda view: math.log1p(len(view.words)),
    "in_question": _share_in_question,
    "in_title": lambda view: float(view.mentions[0].in_title),
    # The question, equal for all of its candidates.
    "ambiguity": lambda view: view.context.mean_ambiguity,
    "first_passage": lambda view: _log(float(view.context.shares.max())),
    "found_beside_best": lambda view: _mean_search_score(view.context),
    "relevance_falls": lambda view: _relevance_drop(view.context),
    # The text around it.
    "question_beside": lambda view: view.question_overlap[0],
    "title_asked": lambda view: view.question_overlap[1],
    "holding": lambda view: math.log1p(view.count_holding()),
}
for _asked in QUESTION_KINDS:
    for _kind in ANSWER_KINDS:
        _ANSWER[f"{_asked} asked, {_kind} given"] = partial(_is_kind, _asked, _kind)

_CORPUS: dict[str, Callable[[SceneView], float]] = {
    "null": lambda context: _log(context.null),
    "first_passage": lambda context: _log(float(context.shares.max())),
    "relevance": lambda context: max(one.relevance for one in context.evidence.read),
    "titles": lambda context: math.log(context.count_titles()),
    "found_beside_best": _mean_search_score,
    "relevance_falls": _relevance_drop,
}

_QUESTION: dict[str, Callable[[QuestionView], float]] = {
    "ambiguity": lambda view: view.context.mean_ambiguity,
    "ambiguity_first": lambda view: view.evidence.read[0].ambiguity,
    "wording": lambda view: view.wording,
    "alone": lambda view: view.alone,
    "mass": lambda view: _log(float(view.masses.sum())),
    "entropy": lambda view: view.entropy(),
    # The probabilities of the three best candidates, and of all.
    "first": lambda view: view.ordered[0],
    "second": lambda view: view.ordered[1],
    "third": lambda view: view.ordered[2],
    "expected": lambda view: float(sum(view.ordered)),
    "namesakes": lambda view: math.log1p(_namesakes(view)),
    "words": lambda view: math.log1p(len(words(view.evidence.question))),
    "has_year": lambda view: float(_has_year(view)),
}
for _asked in QUESTION_KINDS:
    _QUESTION[f"{_asked} asked"] = partial(_is_question_kind, _asked)

ANSWER_FEATURES = tuple(_ANSWER)
CORPUS_FEATURES = tuple(_CORPUS)
QUESTION_FEATURES = (*_CORPUS, *_QUESTION)


# Choose among rewrites: features of each, and one rewrite for each answer so that no two are alike.
#
# The main feature is agreement with all samples of the writer (minimum Bayes risk decoding): the
# single likeliest rewrite says too little, or the same for every answer. A linear model weighs it
# with the other features.

_PHRASE_LIKELY = (
    -1.2
)  # log probability that a phrase counts with: about the mean of the writer's samples
_MOST_COMBINATIONS = 4096  # up to so many are searched exhaustively
_UNANSWERED = 100.0  # penalty for an answer without a rewrite: above any difference of scores

REWRITE_FEATURES = (
    "edits",
    "order",
    "likely",
    "phrase",
    "drawn",
    "inserted",
    "deleted",
    "only_small",
    "front",
    "behind",
    "small_beside_small",
    "digits",
)


@dataclass(frozen=True, slots=True)
class Option:
    """A rewrite that may be given."""

    question: str
    likely: float = _PHRASE_LIKELY
    """Mean log probability of its tokens, by the writer."""
    phrase: bool = False
    """Whether it is the question with a phrase of the evidence."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewritten question and how good it is (higher is better)."""

    question: str
    score: float


def of_rewrites(
    question: str, options: Sequence[Option], drawn: Sequence[str]
) -> list[dict[str, float]]:
    """The features of each option. `drawn` holds all samples of the writer, right or not.

    >>> drawn = ["Who sang it in 1969?", "Who sang it in 1969?", "Who first sang it?"]
    >>> options = [Option("Who sang it in 1969?"), Option("Who first sang it?")]
    >>> first, second = of_rewrites("Who sang it?", options, drawn)
    >>> first["edits"] > second["edits"], first["digits"], second["behind"]
    (True, 1.0, 0.0)
    """
    before = compared(question)
    samples = list(map(compared, drawn))
    counts = Counter(map(key, drawn))
    features = []
    for option in options:
        own = compared(option.question)
        # Agreement with each sample: on the edits, and on the order of words (BLEU-4).
        edits = []
        order = []
        for sample in samples:
            edits.append(edit_f1(before, sample, own))
            order.append(sentence_bleu((sample,), own)[3])
        row = {
            "edits": float(np.mean(edits)) if edits else 0.0,
            "order": float(np.mean(order)) if order else 0.0,
            "likely": option.likely,
            "phrase": float(option.phrase),
            "drawn": counts[key(option.question)] / max(len(drawn), 1),
        }
        features.append(row | change_features(question, option.question))
    return features


def change_features(question: str, rewrite: str) -> dict[str, float]:
    """Features of the words that the rewrite inserts and deletes."""
    before = words(question)
    after = words(rewrite)
    inserted = list((Counter(after) - Counter(before)).elements())
    deleted = list((Counter(before) - Counter(after)).elements())
    old_pairs = set(itertools.pairwise(before))
    small_pairs = 0
    for pair in itertools.pairwise(after):
        if pair not in old_pairs and set(pair) <= SMALL_WORDS:
            small_pairs += 1
    letters = "".join(inserted)
    return {
        "inserted": math.log1p(len(inserted)),
        "deleted": math.log1p(len(deleted)),
        "only_small": float(bool(inserted) and set(inserted) <= SMALL_WORDS),
        "front": float(after[:1] != before[:1]),
        "behind": float(after[-1:] != before[-1:]),
        "small_beside_small": float(small_pairs),
        "digits": float(any(map(str.isdigit, letters))),
    }


def together(
    options: Sequence[Sequence[Rewrite]], alike: Callable[[str], Hashable] | None = None
) -> list[Rewrite | None]:
    """Choose one rewrite for each answer, no two alike, with the highest sum of scores; None where none is left.

    Two rewrites are alike if `alike` maps them to the same value; by default, if they have the same words.
    """
    alike = alike or key
    if math.prod(len(some) + 1 for some in options) > _MOST_COMBINATIONS:
        return _choose_greedily(options, alike)

    def value(way: Iterable[Rewrite | None]) -> float:
        given = [one for one in way if one is not None]
        if len({alike(one.question) for one in given}) < len(given):
            return -math.inf
        return sum(one.score + _UNANSWERED for one in given)

    # The ways of each answer: one of its rewrites, or none.
    return list(max(itertools.product(*([*some, None] for some in options)), key=value))


def _choose_greedily(
    options: Sequence[Sequence[Rewrite]], alike: Callable[[str], Hashable]
) -> list[Rewrite | None]:
    """The best rewrite left for one answer after the other: for very many answers."""
    taken: set[Hashable] = set()
    rewrites: list[Rewrite | None] = []
    for some in options:
        free = [one for one in some if alike(one.question) not in taken]
        best = max(free, key=lambda one: one.score, default=None)
        if best is not None:
            taken.add(alike(best.question))
        rewrites.append(best)
    return rewrites


def added(question: str, rewrite: str) -> frozenset[str]:
    """The stems that a rewrite adds to the question, without generic words. Two rewrites that add the same name the
    same reading.

    >>> said = ("What country won the 2014 FIFA Cup?", "Who won the FIFA Cup in 2014?", "Who won the 2018 FIFA Cup?")
    >>> [sorted(added("Who won the cup?", one)) for one in said]
    [['2014', 'fifa'], ['2014', 'fifa'], ['2018', 'fifa']]
    """
    before = set(map(porter_stem, words(question)))
    after = set()
    for word in words(rewrite):
        if word not in GENERIC_WORDS:
            after.add(porter_stem(word))
    return frozenset(after - before)


def key(question: str) -> str:
    """The words of a rewrite: two rewrites with the same words are the same."""
    return " ".join(words(question))
