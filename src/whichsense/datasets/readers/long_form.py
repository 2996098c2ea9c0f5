"""Readers of datasets with long answers: ASQA, QA-Feedback, ClapNQ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from whichsense.datasets.families import (
    ErrorSpan,
    FeedbackQuestion,
    GroundedAnswer,
    GroundedLongQuestion,
    LongQuestion,
    LongReference,
    MissingInformation,
    Preference,
    SentencePassage,
)
from whichsense.datasets.readers.parts import IdMaker, single_answer, split_references
from whichsense.datasets.records import Annotation, Context, QAPair, Question
from whichsense.datasets.rows import ParsedJson, Row, read_rows

_NO_CONTEXT = "No context provided"  # ASQA's sentence in place of a missing context
_PREDICTIONS = ("prediction 1", "prediction 2", "prediction 3", "prediction 4")


def read_asqa(path: Path | ParsedJson, split: str, fix: str) -> Iterator[LongQuestion]:
    """ASQA as released (one file, splits inside, keyed by id) and as a list or JSON lines (Hugging Face)."""
    # {ambiguous_question, qa_pairs: [{question, short_answers, context, wikipage}], wikipages, annotations}
    for row in read_rows(path, fix, split):
        pairs = row.rows("qa_pairs")
        long_answers = tuple(map(_parse_long_answer, row.rows("annotations")))
        if not pairs or not long_answers:
            raise row.bad("'qa_pairs' or 'annotations' is empty")
        contexts = []
        context_pages = []
        for pair in pairs:
            context = pair.text("context", default="")
            contexts.append("" if context == _NO_CONTEXT else context)
            context_pages.append(pair.text("wikipage", default=""))
        pages = row.rows("wikipages", optional=True)
        yield LongQuestion(
            row.text("sample_id", "id"),
            row.text("ambiguous_question", "question"),
            _parse_disambiguations(pairs),
            long_answers=long_answers,
            contexts=tuple(contexts),
            context_pages=tuple(context_pages),
            pages=tuple(page.text("title") for page in pages),
        )


def _parse_disambiguations(rows: list[Row]) -> tuple[Annotation, ...]:
    pairs = []
    for row in rows:
        answers = row.texts("short_answers")
        if not answers:
            raise row.bad("'short_answers' is empty")
        pairs.append(QAPair(answers, split_references(row.text("question"))))
    return (Annotation("multipleQAs", tuple(pairs)),)


def _parse_long_answer(row: Row) -> LongReference:
    pieces = []
    for piece in row.rows("knowledge", optional=True):
        if piece.has("content"):
            pieces.append(_parse_piece(piece))
    return LongReference(row.text("long_answer"), tuple(pieces))


def _parse_piece(row: Row) -> Context:
    return Context(row.text("wikipage", default=""), row.text("content"))


def read_asqa_part(path: Path, split: str, fix: str) -> Iterator[Question]:
    """ASQA's train questions in QA-Feedback: passages for the whole question, none for a disambiguation."""
    # {id, question, split, long_answers, passages: [{content, wikipage}], qa_pairs}
    for row in read_rows(path, fix):
        pairs = row.rows("qa_pairs")
        long_answers = tuple(map(LongReference, row.texts("long_answers")))
        if not pairs or not long_answers:
            raise row.bad("'qa_pairs' or 'long_answers' is empty")
        missing = ("",) * len(pairs)
        yield LongQuestion(
            row.text("id"),
            row.text("question"),
            _parse_disambiguations(pairs),
            long_answers=long_answers,
            contexts=missing,
            context_pages=missing,
            passages=tuple(map(_parse_piece, row.rows("passages"))),
            split=row.text("split"),
        )


def read_qa_feedback(path: Path, split: str, fix: str) -> Iterator[Question]:
    """QA-Feedback: four predictions for each question, and human feedback."""
    # {question, passages: [[title, sentence…]…], gold, prediction 1 … 4, feedback, preference}
    ids = IdMaker()
    for row in read_rows(path, fix):
        text = row.text("question")
        feedback = row.row("feedback")
        predictions = tuple(row.text(key) for key in _PREDICTIONS)
        passages = tuple(map(_split_title, row.text_lists("passages")))
        missing = feedback.rows("missing-info")
        yield FeedbackQuestion(
            ids.from_text(text),
            text,
            single_answer((row.text("gold"),)),
            passages=passages,
            predictions=predictions,
            errors=_parse_errors(feedback, len(predictions[0])),
            missing=tuple(_parse_missing(item, passages) for item in missing),
            corrected=feedback.text("corrected-prediction"),
            preferences=_parse_preferences(row),
        )


def _split_title(passage: tuple[str, ...]) -> SentencePassage:
    """QA-Feedback writes a passage as its title, then its sentences."""
    title, *sentences = passage or ("",)
    return SentencePassage(title, tuple(sentences))


def _parse_errors(feedback: Row, length: int) -> tuple[ErrorSpan, ...]:
    """The error spans of a prediction of `length` characters."""
    errors = []
    for row in feedback.rows("errors"):
        start = row.number("start")
        end = row.number("end")
        if not 0 <= start <= end <= length:
            raise row.bad(f"'start' and 'end' must lie in 0 … {length}")
        explanation = row.text("explanation", default="")
        errors.append(ErrorSpan(row.text("error type"), start, end, explanation))
    return tuple(errors)


def _parse_missing(
    row: Row, passages: tuple[SentencePassage, ...]
) -> MissingInformation:
    passage = row.number("passage_id")
    sentences = row.numbers("sentence_id")
    if not 1 <= passage <= len(passages):
        raise row.bad(f"'passage_id' must lie in 1 … {len(passages)}")
    # 0 is the title, so that the last number equals the number of sentences
    last = len(passages[passage - 1].sentences)
    if not all(0 <= number <= last for number in sentences):
        raise row.bad(f"'sentence_id' must lie in 0 … {last}")
    return MissingInformation(row.text("error type"), passage, sentences)


def _parse_preferences(row: Row) -> tuple[Preference, ...]:
    """The file has one number a pair, in the order 1-2, 1-3, 1-4, 2-3, 2-4, 3-4.

    0 is no preference, 1 prefers the first of the pair, 2 the second.
    """
    pairs = list(combinations(range(len(_PREDICTIONS)), 2))
    choices = row.numbers("preference")
    if len(choices) != len(pairs) or not {0, 1, 2}.issuperset(choices):
        raise row.bad(f"'preference' must be {len(pairs)} numbers, each 0, 1 or 2")
    preferences = []
    for pair, choice in zip(pairs, choices, strict=True):
        better = pair[choice - 1] if choice else None
        preferences.append(Preference(*pair, better))
    return tuple(preferences)


def read_clapnq(path: Path, split: str, fix: str) -> Iterator[Question]:
    """ClapNQ: the passage is gold where the question has an answer in it."""
    # {id, input, passages: [{title, text, sentences}], output: [{answer, selected_sentences, meta}]}
    for row in read_rows(path, fix):
        long_answers = tuple(map(_parse_grounded_answer, row.rows("output")))
        texts = tuple(answer.text for answer in long_answers if answer.text)
        passages = []
        sentences = []
        for item in row.rows("passages"):
            gold = bool(texts)
            passages.append(Context(item.text("title"), item.text("text"), gold))
            sentences.append(item.texts("sentences"))
        yield GroundedLongQuestion(
            row.text("id"),
            row.text("input"),
            single_answer(texts),
            passages=tuple(passages),
            sentences=tuple(sentences),
            long_answers=long_answers,
        )


def _parse_grounded_answer(row: Row) -> GroundedAnswer:
    meta = row.row("meta")
    return GroundedAnswer(
        row.text("answer"),
        row.texts("selected_sentences"),
        annotators=meta.numbers("annotator"),
        round=meta.number("round"),
        has_minimal_answer=meta.flag("has_minimal_answer"),
        non_consecutive=meta.flag("non_consecutive"),
        skipped=meta.flag("skip"),
    )
