"""Datasets about evidence: RAMDocs' conflicting documents, ClapNQ's grounded answers, WiCE's claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from whichsense.datasets import (
    Claim,
    ConflictQuestion,
    GroundedAnswer,
    GroundedLongQuestion,
)
from whichsense.datasets.families import ClaimLabel, DocumentKind
from whichsense.evaluation.report.tables import Bars, Table, mean, percent


def count_conflicts(
    name: str, questions: Sequence[ConflictQuestion]
) -> tuple[list[Table], list[Bars]]:
    """RAMDocs: right and wrong answers, and the documents behind them."""
    kinds: Counter[str] = Counter()
    document_words = []
    for question in questions:
        for document in question.documents:
            kinds[document.kind] += 1
            document_words.append(len(document.text.split()))
    misled = sum(bool(question.wrong_answers) for question in questions)
    rows = (
        ("entities of a question", mean(len(one.entities) for one in questions)),
        ("wrong answers", mean(len(one.wrong_answers) for one in questions)),
        ("% with a wrong answer", percent(misled, len(questions))),
        ("documents of a question", mean(len(one.documents) for one in questions)),
        ("words in a document", mean(document_words)),
    )
    table = Table("Conflicting documents", ("", "here"), rows)
    return [table], [_share_bars("Documents", kinds, get_args(DocumentKind))]


def count_grounded_answers(
    name: str, questions: Sequence[GroundedLongQuestion]
) -> tuple[list[Table], list[Bars]]:
    """ClapNQ: long answers and the sentences that they use. Skipped annotations do not count."""
    answers: list[GroundedAnswer] = []
    sentence_counts: list[int] = []
    passage_words: list[int] = []
    for question in questions:
        answers.extend(one for one in question.long_answers if one.text)
        sentence_counts.extend(map(len, question.sentences))
        passage_words.extend(len(one.text.split()) for one in question.passages)
    scattered = sum(answer.non_consecutive for answer in answers)
    rows = (
        ("sentences in a passage", mean(sentence_counts)),
        ("words in a passage", mean(passage_words)),
        ("long answers", len(answers)),
        ("words in a long answer", mean(len(one.text.split()) for one in answers)),
        ("sentences that an answer uses", mean(len(one.sentences) for one in answers)),
        ("% of answers from sentences apart", percent(scattered, len(answers))),
    )
    return [Table("Grounded answers", ("", "here"), rows)], []


def count_claims(claims: Sequence[Claim]) -> tuple[list[Table], list[Bars]]:
    """WiCE: labels, the size of the evidence, and how much of it supports a claim."""
    labels: Counter[str] = Counter(claim.label for claim in claims)
    set_sizes: list[int] = []
    for claim in claims:
        set_sizes.extend(len(positions) for positions in claim.supporting if positions)
    unsupported = sum(not any(claim.supporting) for claim in claims)
    rows = (
        ("claims", len(claims)),
        ("words in a claim", mean(len(claim.text.split()) for claim in claims)),
        ("sentences of evidence", mean(len(claim.evidence) for claim in claims)),
        ("sets of supporting sentences", mean(len(one.supporting) for one in claims)),
        ("sentences in a set", mean(set_sizes)),
        ("% without a supporting sentence", percent(unsupported, len(claims))),
    )
    table = Table("Claims", ("", "here"), rows)
    return [table], [_share_bars("Labels", labels, get_args(ClaimLabel))]


def _share_bars(title: str, counts: Counter[str], order: Sequence[str]) -> Bars:
    bars = [(name, percent(counts[name], counts.total())) for name in order]
    return Bars(title, tuple(bars), f"% of {title.lower()}")
