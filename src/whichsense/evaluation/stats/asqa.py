"""ASQA's tables 1 and 2, and section 3.3: lengths, evidence, agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from whichsense.datasets import LongQuestion, LongReference
from whichsense.evaluation.report.tables import Bars, Cell, Table, mean, percent
from whichsense.evaluation.stats.agreement import long_answer_agreement
from whichsense.metrics.rouge import rouge_1_recall

# Table 1 of the paper: questions, annotations for each.
_TABLE_1 = {"train": (4353, 1), "dev": (948, 2), "test": (1015, 2)}
# Table 2 and section 3.3, for dev: words in an answer, words of support and % of answer tokens in it, the same
# without the disambiguations, and ROUGE-L of two annotators.
_WORDS = 64.8
_SUPPORT_WORDS = 225.0
_SUPPORTED = 92.0
_EVIDENCE_WORDS = 172.0
_IN_EVIDENCE = 78.0
_AGREEMENT = 49.6
_STEP = 20  # words in a bar of the histogram
_STEPS = 8  # bars before the last, which stands for all longer answers
_MOST_PAIRS = 7  # the last bar stands for as many or more


def count_long_answers(
    name: str, questions: Sequence[LongQuestion]
) -> tuple[list[Table], list[Bars]]:
    """All statistics of one split."""
    split = name.rpartition("/")[2]
    published = split.startswith("dev")
    tables = [
        _count_sizes(split, questions),
        _count_lengths(questions, published),
        _count_evidence(questions, published),
    ]
    if any(len(question.long_answers) > 1 for question in questions):
        tables.append(_count_agreement(questions, published))
    return tables, [_count_answer_words(questions), _count_pairs(questions)]


def _count_sizes(split: str, questions: Sequence[LongQuestion]) -> Table:
    annotations = [len(question.long_answers) for question in questions]
    rows: list[tuple[Cell, ...]] = [(split, len(questions), mean(annotations))]
    if split in _TABLE_1:
        rows.append((f"paper, {split}", *_TABLE_1[split]))
    columns = ("split", "# questions", "# annotations")
    return Table("Size (table 1)", columns, tuple(rows))


def _count_lengths(questions: Sequence[LongQuestion], published: bool) -> Table:
    answer_words = []
    knowledge_counts = []
    pair_counts = []
    for question in questions:
        pair_counts.append(len(question.annotations[0].pairs))
        for answer in question.long_answers:
            answer_words.append(len(answer.text.split()))
            knowledge_counts.append(len(answer.knowledge))
    rows = (
        ("words in a long answer", mean(answer_words), _WORDS if published else None),
        ("disambiguations of a question", mean(pair_counts), None),
        ("pieces of added knowledge", mean(knowledge_counts), None),
    )
    return Table("Lengths (table 2)", ("", "here", "paper"), rows)


def _count_evidence(questions: Sequence[LongQuestion], published: bool) -> Table:
    """The share of each answer that its annotator's evidence has, with the disambiguations and without."""
    evidence_words = []
    evidence_recall = []
    support_words = []
    support_recall = []
    contexts = 0  # questions that come with any
    for question in questions:
        contexts += any(question.contexts)
        disambiguations = _join_disambiguations(question)
        for answer in question.long_answers:
            evidence = _join_evidence(question, answer)
            support = f"{disambiguations} {evidence}"
            evidence_words.append(len(evidence.split()))
            evidence_recall.append(rouge_1_recall(answer.text, evidence))
            support_words.append(len(support.split()))
            support_recall.append(rouge_1_recall(answer.text, support))
    rows: list[tuple[Cell, ...]] = []
    for label, value, paper in (
        ("words of support", mean(support_words), _SUPPORT_WORDS),
        ("% of answer tokens in it", 100 * mean(support_recall), _SUPPORTED),
        ("words without disambiguations", mean(evidence_words), _EVIDENCE_WORDS),
        ("% of tokens in that", 100 * mean(evidence_recall), _IN_EVIDENCE),
    ):
        rows.append((label, value, paper if published else None))
    return Table(
        "Evidence (section 3.3)",
        ("", "here", "paper"),
        tuple(rows),
        f"{contexts:,} of {len(questions):,} questions come with the context passages that annotators saw",
    )


def _join_evidence(question: LongQuestion, answer: LongReference) -> str:
    """The contexts that the annotator was shown, each once, and the knowledge that they added."""
    contexts = filter(None, dict.fromkeys(question.contexts))
    knowledge = [piece.text for piece in answer.knowledge]
    return " ".join((*contexts, *knowledge))


def _join_disambiguations(question: LongQuestion) -> str:
    texts: list[str] = []
    for pair in question.annotations[0].pairs:
        texts.extend((pair.question, *pair.answers))
    return " ".join(texts)


def _count_agreement(questions: Sequence[LongQuestion], published: bool) -> Table:
    score, compared = long_answer_agreement(questions)
    rows = (
        ("ROUGE-L of two answers", 100 * score, _AGREEMENT if published else None),
        ("questions with two answers", compared, None),
    )
    return Table("Agreement between annotators", ("", "here", "paper"), rows)


def _count_answer_words(questions: Sequence[LongQuestion]) -> Bars:
    counts: Counter[int] = Counter()
    for question in questions:
        for answer in question.long_answers:
            length = len(answer.text.split())
            counts[min(length // _STEP, _STEPS)] += 1
    bars = []
    for step in range(_STEPS + 1):
        low = _STEP * step
        label = f"{low}–{low + _STEP - 1}" if step < _STEPS else f"{low}+"
        bars.append((label, percent(counts[step], counts.total())))
    return Bars("Words in a long answer", tuple(bars), "% of answers")


def _count_pairs(questions: Sequence[LongQuestion]) -> Bars:
    counts: Counter[int] = Counter()
    for question in questions:
        number = len(question.annotations[0].pairs)
        counts[min(number, _MOST_PAIRS)] += 1
    bars = []
    for number in range(1, _MOST_PAIRS + 1):
        label = f"{number}+" if number == _MOST_PAIRS else str(number)
        bars.append((label, percent(counts[number], len(questions))))
    return Bars("Disambiguations of a question", tuple(bars), "% of questions")
