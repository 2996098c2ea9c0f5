"""Examples from long answers: sentences that people wrote or judged, beside the passages that they were given."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from whichsense.datasets import FeedbackQuestion, GroundedLongQuestion, LongQuestion
from whichsense.models.compact.support.terms import terms
from whichsense.text.sentences import sentence_spans, sentences
from whichsense.train.compact.support.examples import SupportExample
from whichsense.train.compact.support.false_edits import falsify

FEEDBACK = "feedback"
_UNSUPPORTED = ("Wrong-Grounding", "Unverifiable")
_FEWEST_WORDS = 5
_SILVER_TRUE = 0.6  # share of a sentence's terms that its passages must have, beside all numbers and names


def feedback_examples(
    questions: Sequence[FeedbackQuestion],
) -> Iterator[SupportExample]:
    """Sentences of a model's answer, unsupported where people marked an error of grounding; and of its correction."""
    for question in questions:
        text = "\n".join(
            f"{passage.title}\n{' '.join(passage.sentences)}"
            for passage in question.passages
        )
        title, _, text = text.partition("\n")
        group = f"question {question.text}"
        prediction = question.predictions[0]
        claims: dict[str, bool] = {}
        for start, end in sentence_spans(prediction):
            wrong = False
            for error in question.errors:
                overlaps = error.start < end and error.end > start
                wrong |= overlaps and error.kind in _UNSUPPORTED
            claims[prediction[start:end]] = not wrong
        for claim in sentences(question.corrected):
            claims.setdefault(claim, True)
        for claim, supported in claims.items():
            if len(claim.split()) >= _FEWEST_WORDS:
                yield SupportExample(claim, title, text, supported, FEEDBACK, group)


def long_answer_examples(
    questions: Sequence[LongQuestion], rng: random.Random
) -> Iterator[SupportExample]:
    """Sentences of people's long answers whose numbers and names the passages have; and false ones made of these."""
    for question in questions:
        text = "\n".join(passage.text for passage in question.passages)
        group = f"question {question.text}"
        for answer in question.long_answers:
            for claim in sentences(answer.text):
                if not _is_said(claim, text):
                    continue
                yield SupportExample(claim, "", text, True, "long answer", group)
                changed = falsify(claim, text, rng)
                if changed:
                    yield SupportExample(changed, "", text, False, "long answer", group)


def _is_said(claim: str, text: str) -> bool:
    said = {term.form for term in terms(text)}
    own = terms(claim)
    if len(claim.split()) < _FEWEST_WORDS or not own:
        return False
    for term in own:
        if term.kind != "word" and term.form not in said:
            return False
    return sum(term.form in said for term in own) / len(own) >= _SILVER_TRUE


def grounded_answer_examples(
    questions: Sequence[GroundedLongQuestion], rng: random.Random
) -> Iterator[SupportExample]:
    """Sentences of answers that were composed of a passage's; beside the passage without these they are unsupported."""
    for question in questions:
        passage = question.passages[0]
        group = f"question {question.text}"
        for answer in question.long_answers:
            used = set(answer.sentences)
            others = [one for one in question.sentences[0] if one not in used]
            for claim in sentences(answer.text):
                if len(claim.split()) < _FEWEST_WORDS:
                    continue
                pairs = [(claim, " ".join(question.sentences[0]), True)]
                if others:
                    pairs.append((claim, " ".join(others), False))
                changed = falsify(claim, passage.text, rng)
                if changed:
                    pairs.append((changed, " ".join(question.sentences[0]), False))
                for text, beside, supported in pairs:
                    yield SupportExample(
                        text, passage.title, beside, supported, "grounded", group
                    )
