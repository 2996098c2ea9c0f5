"""What speaks for a candidate answer, as numbers: the input of the learned scorer.

A feature is added or changed here, and the scorer is fitted again (its file names the features that it was fitted on).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whichsense.models.compact.encoder.runtime import Floats
from whichsense.models.compact.reader.candidates import (
    Answer,
    Evidence,
    passage_probabilities,
)
from whichsense.text.answers import form
from whichsense.text.porter import stem
from whichsense.text.words import sentence_spans, words

KINDS = ("year", "date", "number", "name", "other")
ASKED = ("who", "when", "where", "how many", "which", "other")
_ASKED = {
    "who": r"who|whom|whose",
    "when": r"when|what (?:year|date|day|month|time)|which (?:year|date)|in what year",
    "where": r"where|(?:what|which) (?:country|city|state|place|town|county|continent)",
    "how many": r"how (?:many|much|old|long|far|tall|big|high|fast|deep|often)|what (?:number|percentage|age)",
    "which": r"which|what|name",
}
_EMPTY = frozenset(
    "the a an of in on at to for and or is was were are did do does has have had by with from".split()
)
_LEAST = 1e-6
_FEW = 6  # passages that a question has of its own even in a small corpus


@dataclass(frozen=True)
class Context:
    """A question's candidates beside each other."""

    evidence: Evidence
    answers: Sequence[Answer]

    @property
    def shares(self) -> Floats:
        return passage_probabilities(self.evidence.read)[0]

    @property
    def null(self) -> float:
        return passage_probabilities(self.evidence.read)[1]


def kind_of(answer: str) -> str:
    """Year, date, number, name or other.

    >>> [kind_of(answer) for answer in ("1953", "29 May 1953", "twelve", "8,849 m", "Edmund Hillary", "by boat")]
    ['year', 'date', 'number', 'number', 'name', 'other']
    """
    made = form(answer)
    if made.date:
        return "year" if made.date.year is not None and made.date.told == 1 else "date"
    if made.numbers and not any(made.capitals):
        return "number"
    return "name" if any(made.capitals) else "other"


def asked_for(question: str) -> str:
    """What kind of question word stands in front, or first.

    >>> [asked_for(question) for question in ("Who wrote it?", "In what year did it end?", "how many are there", "so")]
    ['who', 'when', 'how many', 'other']
    """
    lowered = question.lower()
    places = {
        kind: found.start()
        for kind, pattern in _ASKED.items()
        if (found := re.search(rf"\b(?:{pattern})\b", lowered))
    }
    return (
        min(places, key=lambda kind: (places[kind], ASKED.index(kind)))
        if places
        else "other"
    )


def of_answer(place: int, context: Context) -> dict[str, float]:
    """Everything about the candidate at a place of the list, by name."""
    answer, evidence = context.answers[place], context.evidence
    total = sum(other.mass for other in context.answers) or _LEAST
    best = max(other.mass for other in context.answers) or _LEAST
    read_in = sorted({mention.passage for mention in answer.mentions})
    titles = {evidence.passages[number].title for number in read_in}
    relevance = [evidence.read[number].relevance for number in read_in]
    searched = [evidence.found[number] for number in read_in]
    top_found = max((score for _, score in evidence.found), default=1.0) or 1.0
    own = words(answer.text)
    question = set(words(evidence.question)) - _EMPTY
    found = {
        "mass": _log(answer.mass),
        "best_mention": _log(max(mention.mass for mention in answer.mentions)),
        "best_span": _log(max(mention.probability for mention in answer.mentions)),
        "support": _log(answer.support),
        "verdict": answer.mentions[0].verdict,
        "best_verdict": max(mention.verdict for mention in answer.mentions),
        "left": _log(max(mention.left for mention in answer.mentions)),
        "overlaps": answer.overlap(context.answers[:place]),
        "beside_better": _beside_better(place, context),
        "share": answer.mass / total,
        "beside_best": _log(answer.mass / best),
        "rank": math.log1p(place),
        "passages": math.log(len(read_in)),
        "titles": math.log(len(titles)),
        "best_relevance": max(relevance),
        "read_rank": math.log1p(read_in[0]),
        "search_rank": math.log1p(min(rank for rank, _ in searched)),
        "search_score": max(score for _, score in searched) / top_found,
        "null": _log(context.null),
        "length": math.log1p(len(own)),
        "in_question": sum(word in question for word in own) / max(len(own), 1),
        "in_title": float(answer.mentions[0].in_title),
        "ambiguity": float(np.mean([one.ambiguity for one in evidence.read])),
        "first_passage": _log(float(context.shares.max())),
    }
    found |= _falls(evidence)
    found |= _words_around(answer, evidence, question)
    kind, asked = kind_of(answer.text), asked_for(evidence.question)
    found |= {
        f"{a} asked, {k} given": float((a, k) == (asked, kind))
        for a in ASKED
        for k in KINDS
    }
    return found


def _falls(evidence: Evidence) -> dict[str, float]:
    """How far passages fall off behind the best: little in a large corpus, much where few are about the question."""
    searched = [score for _, score in evidence.found]
    relevance = sorted((one.relevance for one in evidence.read), reverse=True)
    return {
        "found_beside_best": float(np.mean(searched)) / (max(searched) or 1.0),
        "relevance_falls": relevance[0] - relevance[min(_FEW, len(relevance)) - 1],
    }


def _words_around(
    answer: Answer, evidence: Evidence, question: set[str]
) -> dict[str, float]:
    """How much of the question stands beside the answer, and where else the answer stands."""
    asked = {stem(word) for word in question} or {""}
    sentences, titles = [0.0], [0.0]
    for mention in answer.mentions[:4]:
        passage = evidence.passages[mention.passage]
        title = set(map(stem, words(passage.title)))
        beside = (
            set(map(stem, words(_sentence(passage.text, mention.start))))
            if not mention.in_title
            else title
        )
        sentences.append(len(asked & (beside | title)) / len(asked))
        titles.append(len(asked & title) / max(len(title), 1))
    told = f" {' '.join(words(answer.text))} "
    holding = sum(
        told in f" {' '.join(words(passage.text))} " for passage in evidence.passages
    )
    return {
        "question_beside": max(sentences),
        "title_asked": max(titles),
        "holding": math.log1p(holding),
    }


def _beside_better(place: int, context: Context) -> float:
    """Whether the answer, where it has most support, shares its sentence with a better one."""
    best, passages = context.answers[place].mentions[0], context.evidence.passages
    better = [answer.mentions[0] for answer in context.answers[:place]]
    near = [
        one
        for one in better
        if one.passage == best.passage and one.in_title == best.in_title
    ]
    apart = [one for one in near if not one.overlaps(best)]
    own = _sentence(passages[best.passage].text, best.start)
    return float(
        any(_sentence(passages[one.passage].text, one.start) == own for one in apart)
    )


def _sentence(text: str, place: int) -> str:
    for start, end in sentence_spans(text):
        if start <= place < end:
            return text[start:end]
    return text


def _namesakes(evidence: Evidence) -> int:
    """How many passages have a title that another one has too, but for what is in brackets: Dune (1984 film)."""
    whole = {passage.title for passage in evidence.passages}
    bare = [re.sub(r"\s*\(.*\)$", "", title).lower() for title in whole]
    return sum(bare.count(title) > 1 for title in bare)


def of_corpus(context: Context) -> dict[str, float]:
    """What the passages for a question tell of their corpus, whatever their answers are."""
    evidence = context.evidence
    found = {
        "null": _log(context.null),
        "first_passage": _log(float(context.shares.max())),
        "relevance": max(one.relevance for one in evidence.read),
        "titles": math.log(len({passage.title for passage in evidence.passages})),
    }
    return found | _falls(evidence)


def of_question(
    context: Context,
    probabilities: Sequence[float],
    wording: float = 0.0,
    alone: float = 0.0,
) -> dict[str, float]:
    """Everything about the question as a whole. `probabilities` are those of its candidates. Of its ambiguity its words
    say `wording`, one by one, and the encoder `alone`, which reads it without a passage."""
    evidence = context.evidence
    ordered = [*sorted(probabilities, reverse=True), 0.0, 0.0, 0.0]
    masses = np.array([answer.mass for answer in context.answers]) + _LEAST
    shares = masses / masses.sum()
    ambiguity = [one.ambiguity for one in evidence.read]
    asked = asked_for(evidence.question)
    found = of_corpus(context) | {
        "ambiguity": float(np.mean(ambiguity)),
        "ambiguity_first": ambiguity[0],
        "wording": wording,
        "alone": alone,
        "mass": _log(float(masses.sum())),
        "entropy": float(-(shares * np.log(shares)).sum()),
        "first": ordered[0],
        "second": ordered[1],
        "third": ordered[2],
        "expected": float(sum(ordered)),
        "namesakes": math.log1p(_namesakes(evidence)),
        "words": math.log1p(len(words(evidence.question))),
        "has_year": float(bool(re.search(r"\b\d{4}\b", evidence.question))),
    }
    return found | {f"{kind} asked": float(kind == asked) for kind in ASKED}


def _log(value: float) -> float:
    return math.log(max(value, _LEAST))


ANSWER_FEATURES = (
    "mass",
    "best_mention",
    "best_span",
    "support",
    "verdict",
    "best_verdict",
    "left",
    "overlaps",
    "beside_better",
    "share",
    "beside_best",
    "rank",
    "passages",
    "titles",
    "best_relevance",
    "read_rank",
    "search_rank",
    "search_score",
    "null",
    "length",
    "in_question",
    "in_title",
    "ambiguity",
    "first_passage",
    "found_beside_best",
    "relevance_falls",
    "question_beside",
    "title_asked",
    "holding",
    *(f"{asked} asked, {kind} given" for asked in ASKED for kind in KINDS),
)
CORPUS_FEATURES = (
    "null",
    "first_passage",
    "relevance",
    "titles",
    "found_beside_best",
    "relevance_falls",
)
QUESTION_FEATURES = (
    *CORPUS_FEATURES,
    "ambiguity",
    "ambiguity_first",
    "wording",
    "alone",
    "mass",
    "entropy",
    "first",
    "second",
    "third",
    "expected",
    "namesakes",
    "words",
    "has_year",
    *(f"{kind} asked" for kind in ASKED),
)
