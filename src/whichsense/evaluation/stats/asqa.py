"""ASQA's tables 1 and 2, and section 3.3: lengths, evidence, agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from whichsense.datasets import LongQuestion, LongReference
from whichsense.evaluation.report.tables import Bars, Table, mean, percent
from whichsense.evaluation.stats.agreement import long_agreement
from whichsense.metrics.rouge import rouge_1_recall

# Table 1: questions, annotations for each. Table 2 and section 3.3: dev.
TABLE_1 = {"train": (4353, 1), "dev": (948, 2), "test": (1015, 2)}
WORDS, SUPPORT_WORDS, SUPPORTED, EVIDENCE_WORDS, IN_EVIDENCE, AGREEMENT = (
    64.8,
    225.0,
    92.0,
    172.0,
    78.0,
    49.6,
)


def tables(
    name: str, questions: Sequence[LongQuestion]
) -> tuple[list[Table], list[Bars]]:
    """All of it for one split."""
    split = name.rpartition("/")[2]
    printed = split.startswith("dev")
    found = [
        _sizes(split, questions),
        _lengths(questions, printed),
        _evidence(questions, printed),
    ]
    if any(len(question.long_answers) > 1 for question in questions):
        score, compared = long_agreement(questions)
        rows = (
            ("ROUGE-L of two answers", 100 * score, AGREEMENT if printed else None),
            ("questions with two answers", compared, None),
        )
        found.append(Table("Agreement between annotators", ("", "here", "paper"), rows))
    return found, [_histogram(questions), _pairs(questions)]


def _sizes(split: str, questions: Sequence[LongQuestion]) -> Table:
    row = (
        split,
        len(questions),
        mean(len(question.long_answers) for question in questions),
    )
    rows = [row, *([(f"paper, {split}", *TABLE_1[split])] if split in TABLE_1 else [])]
    return Table(
        "Size (table 1)", ("split", "# questions", "# annotations"), tuple(rows)
    )


def _lengths(questions: Sequence[LongQuestion], printed: bool) -> Table:
    answers = [answer for question in questions for answer in question.long_answers]
    rows = (
        (
            "words in a long answer",
            mean(len(answer.text.split()) for answer in answers),
            WORDS if printed else None,
        ),
        (
            "disambiguations of a question",
            mean(len(q.annotations[0].pairs) for q in questions),
            None,
        ),
        (
            "pieces of added knowledge",
            mean(len(answer.knowledge) for answer in answers),
            None,
        ),
    )
    return Table("Lengths (table 2)", ("", "here", "paper"), rows)


def _evidence(questions: Sequence[LongQuestion], printed: bool) -> Table:
    """How much of each answer stands in what its annotator was shown or found, with the disambiguations or not."""
    shown = [
        (answer.text, _support(q, answer), _given(q))
        for q in questions
        for answer in q.long_answers
    ]
    with_all = [(text, f"{given} {support}") for text, support, given in shown]
    rows = (
        (
            "words of support",
            mean(len(s.split()) for _, s in with_all),
            SUPPORT_WORDS if printed else None,
        ),
        (
            "% of answer tokens in it",
            100 * mean(rouge_1_recall(t, s) for t, s in with_all),
            SUPPORTED if printed else None,
        ),
        (
            "words without disambiguations",
            mean(len(s.split()) for _, s, _ in shown),
            EVIDENCE_WORDS if printed else None,
        ),
        (
            "% of tokens in that",
            100 * mean(rouge_1_recall(t, s) for t, s, _ in shown),
            IN_EVIDENCE if printed else None,
        ),
    )
    contexts = sum(any(question.contexts) for question in questions)
    return Table(
        "Evidence (section 3.3)",
        ("", "here", "paper"),
        rows,
        f"{contexts:,} of {len(questions):,} questions come with the context passages that annotators saw",
    )


def _support(question: LongQuestion, answer: LongReference) -> str:
    return " ".join(
        [*_distinct(question.contexts), *(piece.text for piece in answer.knowledge)]
    )


def _distinct(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]


def _given(question: LongQuestion) -> str:
    return " ".join(
        f"{pair.question} {' '.join(pair.answers)}"
        for pair in question.annotations[0].pairs
    )


def _histogram(questions: Sequence[LongQuestion]) -> Bars:
    lengths = [
        len(answer.text.split())
        for question in questions
        for answer in question.long_answers
    ]
    counts = Counter(min(length // 20, 8) for length in lengths)
    names = [
        f"{20 * step}–{20 * step + 19}" if step < 8 else "160+" for step in range(9)
    ]
    return Bars(
        "Words in a long answer",
        tuple(
            (name, percent(counts[step], len(lengths)))
            for step, name in enumerate(names)
        ),
        "% of answers",
    )


def _pairs(questions: Sequence[LongQuestion]) -> Bars:
    counts = Counter(
        min(len(question.annotations[0].pairs), 7) for question in questions
    )
    bars = tuple(
        (f"{n}+" if n == 7 else str(n), percent(counts[n], len(questions)))
        for n in range(1, 8)
    )
    return Bars("Disambiguations of a question", bars, "% of questions")
