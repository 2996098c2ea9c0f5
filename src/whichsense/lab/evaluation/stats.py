"""Statistics of a dataset: the numbers that papers print, computed from the file at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, get_args

from whichsense.lab import datasets
from whichsense.lab.datasets import (
    Claim,
    ClarifiedQuestion,
    ConditionalQuestion,
    ConflictQuestion,
    FeedbackQuestion,
    FullQuestion,
    GroundedLongQuestion,
    LongQuestion,
    LongReference,
    Question,
    Record,
    SituatedQuestion,
)
from whichsense.lab.datasets.catalog import matching_releases
from whichsense.lab.datasets.records import ClaimLabel, DocumentKind
from whichsense.lab.evaluation.report import (
    Bars,
    Cell,
    Statistics,
    Table,
    mean,
    percent,
    shares,
)
from whichsense.lab.metrics.asqa import rouge_1_recall
from whichsense.lab.metrics.statistics import kappa, pairwise_f1, pairwise_rouge_l
from whichsense.text.words import EDIT_STOP_WORDS, WH_WORDS, word_edits, words

__all__ = ["Bars", "Statistics", "Table", "statistics"]


# CAmbigNQ's tables 1 and 10 and figures 6 and 7: clarification questions, their categories and
# options.

# Table 1 of the paper: questions, words in the clarification question and its category, options, words in an option.
_TABLE_1 = {
    "train": (4699, 13.6, 2.8, 2.9, 3.3),
    "dev": (461, 15.9, 2.5, 3.3, 3.8),
    "test": (493, 17.8, 2.8, 3.4, 4.1),
}
_TABLE_10 = {
    "train": "version, year, type, information, time",
    "dev": "version, type, time, year, information",
    "test": "version, type, information, year, time",
}
_TOP = 50  # categories in figure 6


def count_clarifications(
    name: str, questions: Sequence[ClarifiedQuestion]
) -> tuple[list[Table], list[Bars]]:
    """All statistics of one split."""
    split = name.rpartition("/")[2]
    categories: Counter[str] = Counter()
    for question in questions:
        if question.category:
            categories[question.category.lower()] += 1
    ranked = categories.most_common(_TOP)
    bars = tuple((category, float(count)) for category, count in ranked)
    tables = [
        _cambignq_sizes(split, questions),
        _count_categories(split, categories, questions),
    ]
    charts = [
        Bars(f"Top {len(ranked)} categories (figure 6)", bars, "questions"),
        _count_options(questions),
    ]
    return tables, charts


def _cambignq_sizes(split: str, questions: Sequence[ClarifiedQuestion]) -> Table:
    """Table 1. The category is counted with its "Which", as the released code parses it."""
    words = []
    category_words = []
    option_counts = []
    option_words = []
    for question in questions:
        words.append(len(question.clarification.split()))
        if question.category:
            category_words.append(len(_heading(question).split()))
        option_counts.append(len(question.options))
        for option in question.options:
            option_words.append(len(option.split()))
    row = (
        split,
        len(questions),
        mean(words),
        mean(category_words),
        mean(option_counts),
        mean(option_words),
    )
    rows: list[tuple[Cell, ...]] = [row]
    if split in _TABLE_1:
        rows.append((f"paper, {split}", *_TABLE_1[split]))
    columns = ("split", "#", "words", "words in category", "options", "words in option")
    return Table("Clarification questions (table 1)", columns, tuple(rows))


def _heading(question: ClarifiedQuestion) -> str:
    """The part of a clarification question before its options."""
    heading, colon, _ = question.clarification.partition(":")
    return heading if colon else question.category


def _count_categories(
    split: str, categories: Counter[str], questions: Sequence[ClarifiedQuestion]
) -> Table:
    """Table 10, and what section B.5 says about rare categories."""
    top = ", ".join(category for category, _ in categories.most_common(5))
    once = list(categories.values()).count(1)
    invalid = 0
    matching = 0
    for question in questions:
        if not question.category:
            invalid += 1
        if len(question.options) == len(question.clarified_answers):
            matching += 1
    rows = (
        ("most frequent (table 10)", top, _TABLE_10.get(split)),
        ("distinct", len(categories), None),
        ("that occur once", once, None),
        ("questions without a category (invalid form)", invalid, None),
        ("questions whose options match the answers in number", matching, None),
    )
    return Table(
        "Categories",
        ("", "here", "paper"),
        rows,
        "over all splits the paper has 593, 412 of them once",
    )


def _count_options(questions: Sequence[ClarifiedQuestion]) -> Bars:
    counts: Counter[int] = Counter()
    for question in questions:
        if question.options:
            counts[len(question.options)] += 1
    bars = []
    for number in sorted(counts):
        bars.append((str(number), percent(counts[number], counts.total())))
    return Bars("Options (figure 7)", tuple(bars), "% of questions")


# How annotators edit a question into an unambiguous one (AmbigQA, figure 2c).

_EDITS_TOP = 25  # edits in the chart
_KINDS = (
    "adds a number",
    "changes the wh-word",
    "only adds words",
    "only removes words",
    "replaces words",
    "no change",
)


def iterate_rewrites(question: Question) -> Iterator[str]:
    """Every rewrite that an annotator gave a question."""
    if isinstance(question, SituatedQuestion):
        yield question.rewrite
    for annotation in question.annotations:
        for pair in annotation.pairs:
            if pair.question:
                yield pair.question


def _mask_digits(word: str) -> str:
    """Numbers of the same length become one word; so do ordinals and decades.

    >>> [_mask_digits(word) for word in ("2017", "1990s", "3rd", "season")]
    ['####', '####s', '#rd', 'season']
    """
    if not word[:1].isdigit():
        return word
    masked = ""
    for letter in word:
        masked += "#" if letter.isdigit() else letter
    return masked


def _unigram_edits(prompt: str, rewrite: str) -> list[str]:
    """The removed (-) and added (+) words, without stop words.

    >>> _unigram_edits("Who sang the song?", "Which group sang the song in 1990?")
    ['+####', '+group', '+which', '-who']
    """
    deleted, added = word_edits(words(prompt), words(rewrite))
    signed = []
    for sign, changed in (("-", deleted), ("+", added)):
        for word in changed.elements():
            if word not in EDIT_STOP_WORDS:
                signed.append(sign + _mask_digits(word))
    return sorted(signed)


def count_edits(
    questions: Sequence[Question], paper: tuple[float, float] | None
) -> tuple[Table, Bars]:
    """The most frequent edits, and the share of all edits that the top 100 and 1,000 are.

    An edit counts once for a question, however many of its rewrites have it: only then do the shares equal the
    paper's. Otherwise an annotator who rewrites ten seasons would weigh ten times.
    """
    counts: Counter[str] = Counter()
    for question in questions:
        distinct: set[str] = set()
        for rewrite in iterate_rewrites(question):
            distinct.update(_unigram_edits(question.text, rewrite))
        counts.update(sorted(distinct))  # sorted: ties rank alike in every run
    total = counts.total()
    ranked = counts.most_common()
    covered = []  # % of all edits, by the top 100 and the top 1,000
    for size in (100, 1000):
        top = dict(ranked[:size])
        covered.append(percent(sum(top.values()), total))
    at_100, at_1000 = paper or (None, None)
    rows: list[tuple[Cell, ...]] = [
        ("all edits", total, None),
        ("distinct edits", len(ranked), None),
        ("% covered by the top 100", covered[0], at_100),
        ("% covered by the top 1,000", covered[1], at_1000),
    ]
    table = Table(
        "Edits (figure 2c)",
        ("", "here", "paper"),
        tuple(rows),
        "unigrams, each once for a question; stop words removed, numbers as #",
    )
    bars = tuple((edit, percent(count, total)) for edit, count in ranked[:_EDITS_TOP])
    chart = Bars(
        f"The {len(bars)} most frequent edits",
        bars,
        "% of edits",
        "- taken out, + put in, # a digit",
    )
    return table, chart


def _classify_edit(prompt: str, rewrite: str) -> list[str]:
    """The kinds of an edit; the first two can accompany any of the others.

    >>> _classify_edit("Who sang it?", "Which group sang it in 1990?")
    ['adds a number', 'changes the wh-word', 'replaces words']
    >>> _classify_edit("Who sang Hurt?", "Who first sang Hurt?")
    ['only adds words']
    """
    changes = _unigram_edits(prompt, rewrite)
    added: list[str] = []
    deleted: list[str] = []
    for change in changes:
        same_sign = added if change[0] == "+" else deleted
        same_sign.append(change[1:])
    kinds = []
    if "#" in "".join(added):
        kinds.append("adds a number")
    if not WH_WORDS.isdisjoint(deleted):
        kinds.append("changes the wh-word")
    if not changes:
        kinds.append("no change")
    elif not deleted:
        kinds.append("only adds words")
    elif not added:
        kinds.append("only removes words")
    else:
        kinds.append("replaces words")
    return kinds


def count_edit_kinds(questions: Sequence[Question]) -> Bars:
    """The share of rewrites of each kind."""
    counts: Counter[str] = Counter()
    total = 0
    for question in questions:
        for rewrite in iterate_rewrites(question):
            counts.update(_classify_edit(question.text, rewrite))
            total += 1
    bars = [(kind, percent(counts[kind], total)) for kind in _KINDS]
    return Bars(
        "Kinds of edits",
        tuple(bars),
        "% of rewrites",
        "the first two may go with any other; stop words do not count",
    )


# Datasets about evidence: RAMDocs' conflicting documents, ClapNQ's grounded answers, WiCE's claims.


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


# QA-Feedback: errors of model answers, information that they miss, and people's preferences.


def count_feedback(
    name: str, questions: Sequence[FeedbackQuestion]
) -> tuple[list[Table], list[Bars]]:
    """All statistics of one split."""
    errors: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for question in questions:
        for error in question.errors:
            errors[error.kind] += 1
        for item in question.missing:
            missing[item.kind] += 1
    tables = [_count_predictions(questions), _count_preferences(questions)]
    charts = [
        _feedback_bars("Errors in a prediction", errors, "error spans"),
        _feedback_bars("Missing information", missing, "mentions"),
    ]
    return tables, charts


def _feedback_bars(title: str, counts: Counter[str], unit: str) -> Bars:
    bars = [(kind, float(count)) for kind, count in counts.most_common()]
    return Bars(title, tuple(bars), unit)


def _count_predictions(questions: Sequence[FeedbackQuestion]) -> Table:
    """Errors, missing information and corrections are about the first prediction."""
    totals: Counter[str] = Counter()  # over all questions, by row
    marked_shares = []  # % of each prediction's characters
    flawless = 0
    for question in questions:
        prediction = question.predictions[0]
        totals["predictions of a question"] += len(question.predictions)
        totals["passages of a question"] += len(question.passages)
        totals["words in the first prediction"] += len(prediction.split())
        totals["words in its correction"] += len(question.corrected.split())
        totals["error spans"] += len(question.errors)
        totals["mentions of missing information"] += len(question.missing)
        marked: set[int] = set()  # characters; error spans may overlap
        for error in question.errors:
            marked.update(range(error.start, error.end))
        marked_shares.append(percent(len(marked), len(prediction)))
        if not question.errors and not question.missing:
            flawless += 1
    rows: list[tuple[str, float]] = []
    for label, total in totals.items():
        rows.append((label, total / len(questions)))
    rows.append(("% of its characters in error spans", mean(marked_shares)))
    rows.append(("% without either", percent(flawless, len(questions))))
    return Table("Feedback on the first prediction", ("", "here"), tuple(rows))


def _count_preferences(questions: Sequence[FeedbackQuestion]) -> Table:
    comparisons = undecided = first_wins = 0
    for question in questions:
        for preference in question.preferences:
            comparisons += 1
            undecided += preference.better is None
            first_wins += preference.better == preference.first
    rows = (
        ("comparisons", comparisons),
        ("% without a preference", percent(undecided, comparisons)),
        ("% that prefer the first of the two", percent(first_wins, comparisons)),
    )
    return Table("Preferences", ("", "here"), rows)


# Agreement of annotators, over the questions that have several of them.


def ambiguity_kappa(questions: Sequence[Question]) -> float | None:
    """Kappa for "has several answers"; None where no question has two annotations.

    Annotators have no identity in the data, so that each pair counts in both orders.
    """
    first_labels = []
    second_labels = []
    for question in questions:
        labels = [annotation.is_single for annotation in question.annotations]
        for first, second in permutations(labels, 2):
            first_labels.append(first)
            second_labels.append(second)
    return kappa(first_labels, second_labels) if first_labels else None


def answer_agreement(questions: Sequence[Question]) -> tuple[float, int]:
    """F1ans of each annotation as the prediction against each other one, and the number of questions."""
    scores = []
    for question in questions:
        score = pairwise_f1(question.answer_sets)
        if score is not None:
            scores.append(score)
    return mean(scores), len(scores)


def long_answer_agreement(questions: Sequence[LongQuestion]) -> tuple[float, int]:
    """ROUGE-L between the long answers of a question, and the number of questions that have two."""
    scores = []
    for question in questions:
        texts = [answer.text for answer in question.long_answers]
        score = pairwise_rouge_l(texts)
        if score is not None:
            scores.append(score)
    return mean(scores), len(scores)


# AmbigQA's table 2 and figure 2: answers per question, the annotators' searches and edits.

# Table 2 of the paper: questions, then % with 1, 2, 3, 4+ question-answer pairs.
_TABLE_2 = {
    "train": (10036, 53, 24, 14, 10),
    "dev": (2002, 49, 23, 14, 13),
    "test": (2004, 44, 24, 16, 16),
}
# % of dev's edits covered by the 100 and the 1,000 most frequent ones, by the paper.
_COVERED = (36.0, 69.0)
# F1ans of two annotators before validation, by the paper; the release has only what passed validation.
_GENERATORS = 60.8
_MOST_SEARCHES = 6  # the last bar of figures 2a and 2b stands for as many or more


def count_annotations(
    name: str, questions: Sequence[Question]
) -> tuple[list[Table], list[Bars]]:
    """All statistics of one split."""
    published = name in ("ambignq/dev", "ambignq-full/dev")
    tables, charts = count_answer_numbers(name, questions)
    edit_table, edit_chart = count_edits(questions, _COVERED if published else None)
    tables.append(edit_table)
    charts.extend((edit_chart, count_edit_kinds(questions)))
    if any(len(question.annotations) > 1 for question in questions):
        tables.append(_ambignq_agreement(questions, published))
    full = [question for question in questions if isinstance(question, FullQuestion)]
    if len(full) == len(questions):
        charts.extend(_count_searches(full))
    return tables, charts


def count_answer_numbers(
    name: str, questions: Sequence[Question]
) -> tuple[list[Table], list[Bars]]:
    """Table 2 alone, for data whose annotators did not rewrite the question.

    A question with several annotations counts with the smallest of them.
    """
    family, _, split = name.rpartition("/")
    counts: Counter[int] = Counter()
    for question in questions:
        sizes = [len(annotation.pairs) for annotation in question.annotations]
        counts[min(4, *sizes)] += 1
    percentages = shares(list(map(counts.__getitem__, (1, 2, 3, 4))))
    rows: list[tuple[str | int | float | None, ...]] = [
        (split, len(questions), *percentages)
    ]
    if family.startswith("ambignq") and split in _TABLE_2:
        rows.append((f"paper, {split}", *_TABLE_2[split]))
    labels = ("1", "2", "3", "4+")
    table = Table(
        "Answers per question (table 2)",
        ("split", "# data", *labels),
        tuple(rows),
        "% of questions",
    )
    chart = Bars(
        "Answers per question",
        tuple(zip(labels, percentages, strict=True)),
        "% of questions",
    )
    return [table], [chart]


def _ambignq_agreement(questions: Sequence[Question], published: bool) -> Table:
    score, compared = answer_agreement(questions)
    rows = (
        (
            "F1ans of each annotation against each other",
            100 * score,
            _GENERATORS if published else None,
        ),
        ("kappa: one answer or several", ambiguity_kappa(questions), None),
        ("questions with two annotations or more", compared, None),
    )
    return Table(
        "Agreement between annotations",
        ("", "here", "paper"),
        rows,
        "the paper compares annotators before validation; the release holds what passed it",
    )


def _count_searches(questions: Sequence[FullQuestion]) -> list[Bars]:
    """Figures 2a and 2b: pages viewed and queries used."""
    pages = []
    queries = []
    for question in questions:
        pages.append(len(set(question.viewed_titles)))
        queries.append(len(question.searches))
    return [
        _ambignq_bars("Pages viewed (figure 2a)", pages),
        _ambignq_bars("Search queries (figure 2b)", queries),
    ]


def _ambignq_bars(title: str, numbers: Sequence[int]) -> Bars:
    counts: Counter[int] = Counter()
    for number in numbers:
        counts[min(number, _MOST_SEARCHES)] += 1
    bars = []
    for number in range(_MOST_SEARCHES + 1):
        label = f"{number}+" if number == _MOST_SEARCHES else str(number)
        bars.append((label, percent(counts[number], len(numbers))))
    return Bars(title, tuple(bars))


# ASQA's tables 1 and 2, and section 3.3: lengths, evidence, agreement.

# Table 1 of the paper: questions, annotations for each.
_ASQA_TABLE_1 = {"train": (4353, 1), "dev": (948, 2), "test": (1015, 2)}
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
        _asqa_sizes(split, questions),
        _count_lengths(questions, published),
        _count_evidence(questions, published),
    ]
    if any(len(question.long_answers) > 1 for question in questions):
        tables.append(_asqa_agreement(questions, published))
    return tables, [_count_answer_words(questions), _count_pairs(questions)]


def _asqa_sizes(split: str, questions: Sequence[LongQuestion]) -> Table:
    annotations = [len(question.long_answers) for question in questions]
    rows: list[tuple[Cell, ...]] = [(split, len(questions), mean(annotations))]
    if split in _ASQA_TABLE_1:
        rows.append((f"paper, {split}", *_ASQA_TABLE_1[split]))
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


def _asqa_agreement(questions: Sequence[LongQuestion], published: bool) -> Table:
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


_STATS_TOP = 20  # kinds of questions in the chart
_STATS_STEP = 3  # words in a bar of the chart of lengths
_LONG = 19  # words; the last bar stands for as many or more

_Counted = tuple[list[Table], list[Bars]]

# The first type that a dataset has records of decides. A condition is not a rewrite, so that there are no edits to
# count for ConditionalQuestion.
_COUNTERS: tuple[
    tuple[type[Question], Callable[[str, Sequence[Any]], _Counted]], ...
] = (
    (ClarifiedQuestion, count_clarifications),
    (LongQuestion, count_long_answers),
    (FeedbackQuestion, count_feedback),
    (ConflictQuestion, count_conflicts),
    (GroundedLongQuestion, count_grounded_answers),
    (ConditionalQuestion, count_answer_numbers),
)


def statistics(name: str, data_dir: str | Path | None = None) -> Statistics:
    """All statistics of one dataset."""
    dataset = datasets.load(name, Record, data_dir=data_dir)
    records = list(dataset)
    questions = []
    claims = []
    for record in records:
        if isinstance(record, Question):
            questions.append(record)
        elif isinstance(record, Claim):
            claims.append(record)
    if claims:
        tables, charts = count_claims(claims)
        charts.append(_count_words("Words in a claim", "% of claims", records))
    else:
        tables, charts = _count_family(name, questions)
        tables.insert(0, _count_answers(questions))
        charts.append(_count_words("Words in a question", "% of questions", records))
        charts.extend(_count_kinds(questions))
    release = _name_release(dataset.about, dataset.path, len(records))
    return Statistics(name, release, tuple(tables), tuple(charts))


def _count_family(name: str, questions: list[Question]) -> _Counted:
    """The statistics that belong to the dataset's family."""
    for kind, count in _COUNTERS:
        chosen = [question for question in questions if isinstance(question, kind)]
        if chosen:
            return count(name, chosen)
    if not questions:
        return count_answer_numbers(name, questions)
    if any(any(iterate_rewrites(question)) for question in questions):
        return count_annotations(name, questions)
    return [], []


def _name_release(about: datasets.Entry, path: Path, count: int) -> str:
    """The release with this file name and count. `data check` also verifies the checksum."""
    for release in matching_releases(about, path):
        if release.count in (None, count):
            return f"{release.name}: {release.note}" if release.note else release.name
    return "unknown"


def _count_answers(questions: list[Question]) -> Table:
    question_words = []
    answer_counts = []  # distinct answers of each answerable question
    alias_counts = []
    alias_words = []
    ambiguous = 0
    for question in questions:
        question_words.append(len(question.text.split()))
        ambiguous += question.is_ambiguous
        if not question.is_answerable:
            continue
        answers = question.answers
        answer_counts.append(len(answers))
        for aliases in answers:
            alias_counts.append(len(aliases))
            for alias in aliases:
                alias_words.append(len(alias.split()))
    rows = (
        ("questions", len(questions)),
        ("without an answer", len(questions) - len(answer_counts)),
        (
            "% ambiguous (no annotator gave one answer)",
            percent(ambiguous, len(questions)),
        ),
        ("words in a question", mean(question_words)),
        ("distinct answers of a question", mean(answer_counts)),
        ("aliases of an answer", mean(alias_counts)),
        ("words in an answer", mean(alias_words)),
    )
    return Table("In general", ("", "here"), rows)


def _count_kinds(questions: list[Question]) -> list[Bars]:
    """The dataset's own labels of its questions, where it has them."""
    counts: Counter[str] = Counter()
    for question in questions:
        counts.update(question.kinds)
    if not counts:
        return []
    bars = []
    for kind, count in counts.most_common(_STATS_TOP):
        bars.append((kind, percent(count, len(questions))))
    return [Bars("Kinds of questions", tuple(bars), "% of questions")]


def _count_words(title: str, unit: str, records: Sequence[Record]) -> Bars:
    counts: Counter[int] = Counter()  # by the smallest length of a bar
    for record in records:
        length = len(record.text.split())
        low = 1 + (length - 1) // _STATS_STEP * _STATS_STEP
        counts[min(low, _LONG)] += 1
    bars = []
    for low in range(1, _LONG, _STATS_STEP):
        label = f"{low}–{low + _STATS_STEP - 1}"
        bars.append((label, percent(counts[low], len(records))))
    bars.append((f"{_LONG}+", percent(counts[_LONG], len(records))))
    return Bars(title, tuple(bars), unit)
