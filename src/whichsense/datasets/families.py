"""The records of particular datasets: what each family adds to a question, and claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from whichsense.datasets.records import Context, Question, Record

DocumentKind = Literal["correct", "misinfo", "noise"]
ClaimLabel = Literal["supported", "partially_supported", "not_supported"]


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """An annotator's query, and the results that the search engine returned (title and snippet)."""

    query: str
    results: tuple[Context, ...]


@dataclass(frozen=True, slots=True)
class FullQuestion(Question):
    """AmbigNQ's full release: the annotators' searches, and the answer of Natural Questions."""

    viewed_titles: tuple[str, ...] = ()
    searches: tuple[SearchQuery, ...] = ()
    nq_answers: tuple[str, ...] = ()
    nq_title: str = ""


@dataclass(frozen=True, slots=True)
class ClarifiedQuestion(FullQuestion):
    """CAmbigNQ: the clarification question, and the answers (aliases) of its options in their order."""

    clarification: str = ""
    clarified_answers: tuple[tuple[str, ...], ...] = ()
    """Empty where it is not known which answer belongs to which option."""
    category: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LongReference:
    """A long answer by one annotator, with the pieces of Wikipedia that they added to the given ones."""

    text: str
    knowledge: tuple[Context, ...] = ()


@dataclass(frozen=True, slots=True)
class LongQuestion(Question):
    """ASQA. Its only annotation holds the disambiguations.

    `contexts` and `context_pages` are parallel to the annotation's pairs (empty strings where none was given).
    """

    long_answers: tuple[LongReference, ...] = ()
    contexts: tuple[str, ...] = ()
    context_pages: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    passages: tuple[Context, ...] = ()
    """Passages for the whole question, not for one disambiguation: QA-Feedback's."""
    split: str = ""
    """The AmbigNQ split that the question is in, where the file has it: "train" or "val"."""


@dataclass(frozen=True, slots=True)
class ErrorSpan:
    """QA-Feedback: an error in the first prediction, `prediction[start:end]`."""

    kind: str
    """"Irrelevant", "Redundant", "Wrong-Grounding", "Unverifiable" or "Incoherent"."""
    start: int
    end: int
    explanation: str = ""
    """The repeated span of a redundant one, or the passage and sentence that contradict it."""


@dataclass(frozen=True, slots=True)
class MissingInformation:
    """QA-Feedback: sentences of a passage that the first prediction should have used."""

    kind: str
    """"Missing-Answer", "Missing-Major-Auxiliary" or "Missing-Minor-Auxiliary"."""
    passage_number: int
    """Number of the passage in the record, from 1."""
    sentence_numbers: tuple[int, ...]
    """Numbers of the sentences in the passage, from 1; 0 is the title."""


@dataclass(frozen=True, slots=True)
class SentencePassage:
    """A passage that is split into sentences."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preference:
    """A comparison of two predictions: positions from 0, and which of them is better; None for no preference."""

    first: int
    second: int
    better: int | None


@dataclass(frozen=True, slots=True)
class FeedbackQuestion(Question):
    """QA-Feedback: four model answers to a question of ASQA, and human feedback on them.

    Errors, missing information and the correction are about the first prediction. Its annotation is the gold long
    answer.
    """

    passages: tuple[SentencePassage, ...] = ()
    predictions: tuple[str, ...] = ()
    errors: tuple[ErrorSpan, ...] = ()
    missing: tuple[MissingInformation, ...] = ()
    corrected: str = ""
    preferences: tuple[Preference, ...] = ()


@dataclass(frozen=True, slots=True)
class SituatedQuestion(Question):
    """SituatedQA: the same question asked at a date or in a place, and its rewrite that says so.

    Several records share a `prompt_id`; `any_answers` are the answers for all dates or places together.
    """

    prompt_id: str = ""
    rewrite: str = ""
    date: str = ""
    place: str = ""
    any_answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroundedQuestion(Question):
    """A question that comes with passages: SQuAD, gold passages of NQ, HotpotQA, MuSiQue, ClapNQ."""

    passages: tuple[Context, ...] = ()


@dataclass(frozen=True, slots=True)
class GroundedAnswer:
    """ClapNQ: a long answer, and the sentences of the passage that it is composed of."""

    text: str
    sentences: tuple[str, ...]
    annotators: tuple[int, ...] = ()
    round: int = 0
    has_minimal_answer: bool = False
    non_consecutive: bool = False
    """True where the sentences are not adjacent in the passage."""
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class GroundedLongQuestion(GroundedQuestion):
    """ClapNQ: a question of Natural Questions with its passage, and long answers grounded in it.

    The annotation has the long answers as aliases of one answer; a question without an answer in its passage has
    none.
    """

    sentences: tuple[tuple[str, ...], ...] = ()
    """The sentences of each passage."""
    long_answers: tuple[GroundedAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """CondAmbigQA: under this condition these statements answer the question, as these passages say."""

    condition: str
    statements: tuple[str, ...]
    citations: tuple[Context, ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionalQuestion(GroundedQuestion):
    """CondAmbigQA. Its answers are statements, not spans: the annotation has one pair for each condition."""

    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class ConflictDocument:
    """RAMDocs: a document, whether it is right, and the answer that it gives ("unknown" for noise)."""

    text: str
    kind: DocumentKind
    answer: str


@dataclass(frozen=True, slots=True)
class ConflictQuestion(Question):
    """RAMDocs: several right answers, each for another entity of the name, among documents that are wrong.

    `entities` is parallel to the annotation's pairs.
    """

    documents: tuple[ConflictDocument, ...] = ()
    entities: tuple[str, ...] = ()
    wrong_answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedQuestion(Question):
    """EfficientQA's test set: the systems' predictions, sorted by people who checked them."""

    surely_correct: tuple[str, ...] = ()
    possibly_correct: tuple[str, ...] = ()
    incorrect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntityQuestion(Question):
    """PopQA: asked about `subject`, whose page had `popularity` views in a month; the relation is its kind."""

    subject: str = ""
    popularity: int = 0


@dataclass(frozen=True, slots=True)
class Claim(Record):
    """WiCE: a sentence of Wikipedia, and whether the page that it cites supports it."""

    label: ClaimLabel
    evidence: tuple[str, ...]
    """The cited page, one sentence each."""
    supporting: tuple[tuple[int, ...], ...]
    """Sets of positions in `evidence`; each set alone is the support. One empty set where there is none."""
    title: str = ""
    """The article that makes the claim; `section` and `context` are where in it, and the text before."""
    section: str = ""
    context: str = ""
