"""Datasets about evidence: RAMDocs' conflicting documents, ClapNQ's grounded answers, WiCE's claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from whichsense.datasets import Claim, ConflictQuestion, GroundedLongQuestion
from whichsense.datasets.families import ClaimLabel, DocumentKind
from whichsense.evaluation.report.tables import Bars, Table, mean, percent


def count_conflicts(
    name: str, questions: Sequence[ConflictQuestion]
) -> tuple[list[Table], list[Bars]]:
    """RAMDocs: right and wrong answers, and the documents behind them."""
    kinds: Counter[str] = Counter()
    entities = []  # numbers of them in each question; so are the next two
    wrong_answers = []
    documents = []
    document_words = []
    for question in questions:
        entities.append(len(question.entities))
        wrong_answers.append(len(question.wrong_answers))
        documents.append(len(question.documents))
        for document in question.documents:
            kinds[document.kind] += 1
            document_words.append(len(document.text.split()))
    misled = len(questions) - wrong_answers.count(0)
    rows = (
        ("entities of a question", mean(entities)),
        ("wrong answers", mean(wrong_answers)),
        ("% with a wrong answer", percent(misled, len(questions))),
        ("documents of a question", mean(documents)),
        ("words in a document", mean(document_words)),
    )
    table = Table("Conflicting documents", ("", "here"), rows)
    return [table], [_share_bars("Documents", kinds, get_args(DocumentKind))]


def count_grounded_answers(
    name: str, questions: Sequence[GroundedLongQuestion]
) -> tuple[list[Table], list[Bars]]:
    """ClapNQ: long answers and the sentences that they use. Skipped annotations do not count."""
    passage_words = []
    passage_sentences: list[int] = []
    answer_words = []
    answer_sentences = []
    scattered = 0  # answers from sentences that are not adjacent
    for question in questions:
        for passage in question.passages:
            passage_words.append(len(passage.text.split()))
        passage_sentences.extend(map(len, question.sentences))
        for answer in question.long_answers:
            if not answer.text:  # the annotator skipped the question
                continue
            answer_words.append(len(answer.text.split()))
            answer_sentences.append(len(answer.sentences))
            scattered += answer.non_consecutive
    answers = len(answer_words)
    rows = (
        ("sentences in a passage", mean(passage_sentences)),
        ("words in a passage", mean(passage_words)),
        ("long answers", answers),
        ("words in a long answer", mean(answer_words)),
        ("sentences that an answer uses", mean(answer_sentences)),
        ("% of answers from sentences apart", percent(scattered, answers)),
    )
    return [Table("Grounded answers", ("", "here"), rows)], []


def count_claims(claims: Sequence[Claim]) -> tuple[list[Table], list[Bars]]:
    """WiCE: labels, the size of the evidence, and how much of it supports a claim."""
    labels: Counter[str] = Counter()
    claim_words = []
    evidence = []  # sentences of the cited page
    supporting_sets = []  # alternative sets of sentences for a claim
    set_sizes = []
    unsupported = 0
    for claim in claims:
        labels[claim.label] += 1
        claim_words.append(len(claim.text.split()))
        evidence.append(len(claim.evidence))
        supporting_sets.append(len(claim.supporting))
        if not any(claim.supporting):
            unsupported += 1
        for positions in filter(None, claim.supporting):
            set_sizes.append(len(positions))
    rows = (
        ("claims", len(claims)),
        ("words in a claim", mean(claim_words)),
        ("sentences of evidence", mean(evidence)),
        ("sets of supporting sentences", mean(supporting_sets)),
        ("sentences in a set", mean(set_sizes)),
        ("% without a supporting sentence", percent(unsupported, len(claims))),
    )
    table = Table("Claims", ("", "here"), rows)
    return [table], [_share_bars("Labels", labels, get_args(ClaimLabel))]


def _share_bars(title: str, counts: Counter[str], order: Sequence[str]) -> Bars:
    bars = [(name, percent(counts[name], counts.total())) for name in order]
    return Bars(title, tuple(bars), f"% of {title.lower()}")
