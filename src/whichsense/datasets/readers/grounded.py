"""Readers of datasets with passages: SQuAD, NQ's gold passages, HotpotQA, MuSiQue, and the claims of WiCE."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from whichsense.datasets.families import Claim, ClaimLabel, GroundedQuestion
from whichsense.datasets.readers.parts import IdMaker, single_answer
from whichsense.datasets.records import Context, Question
from whichsense.datasets.rows import Row, read_rows


def read_squad(path: Path, split: str, fix: str) -> Iterator[Question]:
    """SQuAD 1.1 and 2.0: the official JSON (`data`, answers with offsets) and a plain list with answer texts."""
    # {title, paragraphs: [{context, qas: [{id, question, answers, is_impossible}]}]}
    for article in read_rows(path, fix, "data"):
        title = article.text("title").replace("_", " ")
        for paragraph in article.rows("paragraphs"):
            passage = Context(title, paragraph.text("context"), gold=True)
            for row in paragraph.rows("qas"):
                yield GroundedQuestion(
                    row.text("id"),
                    row.text("question"),
                    single_answer(_squad_answers(row)),
                    passages=(passage,),
                )


def _squad_answers(row: Row) -> tuple[str, ...]:
    if row.value.get("is_impossible"):
        return ()
    value = row.field("answers")
    answers: tuple[str, ...]
    if isinstance(value, list) and any(isinstance(item, str) for item in value):
        answers = row.texts("answers")
    else:
        answers = tuple(item.text("text") for item in row.rows("answers"))
    if not answers:
        raise row.bad("no answer, though 'is_impossible' does not say so")
    return tuple(dict.fromkeys(answers))


def read_gold_passages(path: Path, split: str, fix: str) -> Iterator[Question]:
    """NQ-open questions with the passage that Natural Questions' annotators marked."""
    # {question, answers, ctxs: [{title, text, isgold}]}
    ids = IdMaker()
    for row in read_rows(path, fix):
        passages = []
        for item in row.rows("ctxs"):
            gold = bool(item.field("isgold"))
            passages.append(Context(item.text("title"), item.text("text"), gold))
        text = row.text("question")
        yield GroundedQuestion(
            ids.from_text(text),
            text,
            single_answer(row.texts("answers")),
            passages=tuple(passages),
        )


def read_hotpotqa(path: Path, split: str, fix: str) -> Iterator[Question]:
    """HotpotQA: ten pages in sentences, some of them supporting."""
    # {_id, question, answer, supporting_facts: [[title, n]…], context: [[title, [sentence…]]…]}
    for row in read_rows(path, fix):
        supporting = {str(title) for title, _ in row.field("supporting_facts")}
        passages = []
        try:
            for title, sentences in row.field("context"):
                text = "".join(sentences)
                passages.append(Context(title, text, title in supporting))
        except (TypeError, ValueError):
            raise row.bad("'context' must be a list of [title, sentences]") from None
        yield GroundedQuestion(
            row.text("_id", "id"),
            row.text("question"),
            single_answer((row.text("answer"),)),
            passages=tuple(passages),
        )


def read_musique(path: Path, split: str, fix: str) -> Iterator[Question]:
    """MuSiQue: twenty paragraphs, some of them supporting."""
    # {id, question, answer, answer_aliases, paragraphs: [{title, paragraph_text, is_supporting}]}
    for row in read_rows(path, fix):
        passages = []
        for item in row.rows("paragraphs"):
            gold = bool(item.value.get("is_supporting"))
            text = item.text("paragraph_text")
            passages.append(Context(item.text("title"), text, gold))
        answers = (row.text("answer"), *row.texts("answer_aliases", optional=True))
        yield GroundedQuestion(
            row.text("id"),
            row.text("question"),
            single_answer(answers),
            passages=tuple(passages),
        )


def read_wice(path: Path, split: str, fix: str) -> Iterator[Claim]:
    """WiCE: a claim, its label, and the sentences of the cited page that support it."""
    # {claim, label, supporting_sentences: [[n…]…], evidence: [sentence…], meta: {id, claim_title, …}}
    for row in read_rows(path, fix):
        meta = row.row("meta")
        evidence = row.texts("evidence")
        supporting = row.number_lists("supporting_sentences")
        for positions in supporting:
            if not all(0 <= position < len(evidence) for position in positions):
                raise row.bad(f"'supporting_sentences' must be below {len(evidence)}")
        yield Claim(
            meta.text("id"),
            row.text("claim"),
            label=_parse_label(row),
            evidence=evidence,
            supporting=supporting,
            title=meta.text("claim_title"),
            section=meta.text("claim_section"),
            context=meta.text("claim_context"),
        )


def _parse_label(row: Row) -> ClaimLabel:
    label = row.text("label")
    known: tuple[ClaimLabel, ...] = get_args(ClaimLabel)
    for one in known:
        if label == one:
            return one
    raise row.bad(f"'label' must be one of {', '.join(known)}, not '{label}'")
