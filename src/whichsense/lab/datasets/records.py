"""The records of datasets: questions with their gold answers, one family for each kind of annotation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from whichsense.text.words import normalize
from whichsense.types import frozen

# The records that datasets share: a question, its annotations, and the passages that come with it.

# AmbigNQ's own names, which its files have
AnnotationKind = Literal["singleAnswer", "multipleQAs"]


@frozen
class Record:
    """One item of a dataset: a question, or a claim to verify."""

    id: str
    text: str


@frozen
class QAPair:
    """One answer with its aliases and, where annotators wrote one, the rewrite that it answers."""

    answers: tuple[str, ...]
    questions: tuple[str, ...] = ()
    """The rewrite, and other accepted wordings of it (AmbigNQ writes them in one string, split by `|`)."""
    evidence: tuple[str, ...] = ()
    """Ids of the passages that contain the answer, where they are known."""

    @property
    def question(self) -> str:
        """The first wording of the rewrite; empty where there is no rewrite."""
        return self.questions[0] if self.questions else ""


@frozen
class Annotation:
    """One annotator's answer: a single answer to the question as it is, or several, each with a rewrite."""

    kind: AnnotationKind
    pairs: tuple[QAPair, ...]

    @property
    def is_single(self) -> bool:
        return self.kind == "singleAnswer"

    @property
    def answers(self) -> tuple[tuple[str, ...], ...]:
        """The aliases of each answer."""
        return tuple(pair.answers for pair in self.pairs)


@frozen
class Question(Record):
    """A question with its annotations. A question without annotations has no known answer.

    >>> dance = QAPair(("Baryshnikov", "Mikhail Baryshnikov"))
    >>> both = (Annotation("singleAnswer", (dance,)), Annotation("singleAnswer", (QAPair(("mikhail baryshnikov",)),)))
    >>> Question("1", "Who danced?", both).answers
    (('Baryshnikov', 'Mikhail Baryshnikov', 'mikhail baryshnikov'),)
    """

    annotations: tuple[Annotation, ...] = ()
    kinds: tuple[str, ...] = ()
    """The kinds of ambiguity or the relation asked for, where the dataset has them."""

    @property
    def is_answerable(self) -> bool:
        return bool(self.annotations)

    @property
    def is_ambiguous(self) -> bool:
        """True where no annotator gave a single answer: the official script's "multi" questions."""
        if not self.annotations:
            return False
        return not any(annotation.is_single for annotation in self.annotations)

    @property
    def several(self) -> Annotation | None:
        """The first annotation with several answers, each with a rewrite."""
        for annotation in self.annotations:
            if not annotation.is_single and len(annotation.pairs) > 1:
                return annotation
        return None

    @property
    def answer_sets(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """The aliases of each answer, by annotation: the reference of F1ans."""
        return tuple(annotation.answers for annotation in self.annotations)

    @property
    def answers(self) -> tuple[tuple[str, ...], ...]:
        """Every distinct answer of all annotations with its aliases; answers that share an alias are one."""
        every: list[tuple[str, ...]] = []
        for answers in self.answer_sets:
            every.extend(answers)
        return merge_answers(every)


@frozen
class Context:
    """A passage that comes with a question; `gold` where annotators marked it as answering."""

    title: str
    text: str
    gold: bool = False


def merge_answers(answers: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Join alias lists that share an alias, so that each distinct answer appears once.

    >>> merge_answers([("NYC",), ("Boston",), ("New York", "nyc")])
    (('NYC', 'New York', 'nyc'), ('Boston',))
    """
    # Each group: its aliases in order (a dict as an ordered set), and their normalized forms.
    groups: list[tuple[dict[str, None], set[str]]] = []
    for aliases in answers:
        names = dict.fromkeys(aliases)
        keys = {normalize(alias) for alias in aliases}
        separate = []
        target = None
        for group in groups:
            group_names, group_keys = group
            if not group_keys & keys:
                separate.append(group)
            elif target is None:
                target = group
                separate.append(group)
            else:  # the new aliases connect two groups: the later joins the earlier
                target[0].update(group_names)
                target[1].update(group_keys)
        if target is None:
            separate.append((names, keys))
        else:
            target[0].update(names)
            target[1].update(keys)
        groups = separate
    return tuple(tuple(names) for names, _ in groups)


def rewrites_as_questions(question: Question) -> list[Question]:
    """Return every rewrite that annotators wrote, as a question of its own with one answer.

    >>> pairs = (QAPair(("1924",), ("When did the winter games begin?",)), QAPair(("1896",)))
    >>> games = Question("7", "When did the games begin?", (Annotation("multipleQAs", pairs),))
    >>> [(one.id, one.text, one.answers) for one in rewrites_as_questions(games)]
    [('7/0', 'When did the winter games begin?', (('1924',),))]
    """
    # A dict as an ordered set: two annotators may write the same rewrite with the same answer.
    rewrites: dict[tuple[str, tuple[str, ...]], None] = {}
    for annotation in question.annotations:
        if annotation.is_single:
            continue
        for pair in annotation.pairs:
            for text in pair.questions:
                if text and pair.answers:
                    rewrites[text, pair.answers] = None
    questions = []
    for number, (text, answers) in enumerate(rewrites):
        annotation = Annotation("singleAnswer", (QAPair(answers),))
        questions.append(Question(f"{question.id}/{number}", text, (annotation,)))
    return questions


# The records of particular datasets: what each family adds to a question, and claims.

DocumentKind = Literal["correct", "misinfo", "noise"]
ClaimLabel = Literal["supported", "partially_supported", "not_supported"]


@frozen
class SearchQuery:
    """An annotator's query, and the results that the search engine returned (title and snippet)."""

    query: str
    results: tuple[Context, ...]


@frozen
class FullQuestion(Question):
    """AmbigNQ's full release: the annotators' searches, and the answer of Natural Questions."""

    viewed_titles: tuple[str, ...] = ()
    searches: tuple[SearchQuery, ...] = ()
    nq_answers: tuple[str, ...] = ()
    nq_title: str = ""


@frozen
class ClarifiedQuestion(FullQuestion):
    """CAmbigNQ: the clarification question, and the answers (aliases) of its options in their order."""

    clarification: str = ""
    clarified_answers: tuple[tuple[str, ...], ...] = ()
    """Empty where it is not known which answer belongs to which option."""
    category: str = ""
    options: tuple[str, ...] = ()


@frozen
class LongReference:
    """A long answer by one annotator, with the pieces of Wikipedia that they added to the given ones."""

    text: str
    knowledge: tuple[Context, ...] = ()


@frozen
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


@frozen
class ErrorSpan:
    """QA-Feedback: an error in the first prediction, `prediction[start:end]`."""

    kind: str
    """"Irrelevant", "Redundant", "Wrong-Grounding", "Unverifiable" or "Incoherent"."""
    start: int
    end: int
    explanation: str = ""
    """The repeated span of a redundant one, or the passage and sentence that contradict it."""


@frozen
class MissingInformation:
    """QA-Feedback: sentences of a passage that the first prediction should have used."""

    kind: str
    """"Missing-Answer", "Missing-Major-Auxiliary" or "Missing-Minor-Auxiliary"."""
    passage_number: int
    """Number of the passage in the record, from 1."""
    sentence_numbers: tuple[int, ...]
    """Numbers of the sentences in the passage, from 1; 0 is the title."""


@frozen
class SentencePassage:
    """A passage that is split into sentences."""

    title: str
    sentences: tuple[str, ...]


@frozen
class Preference:
    """A comparison of two predictions: positions from 0, and which of them is better; None for no preference."""

    first: int
    second: int
    better: int | None


@frozen
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


@frozen
class SituatedQuestion(Question):
    """SituatedQA: the same question asked at a date or in a place, and its rewrite that says so.

    Several records share a `prompt_id`; `any_answers` are the answers for all dates or places together.
    """

    prompt_id: str = ""
    rewrite: str = ""
    date: str = ""
    place: str = ""
    any_answers: tuple[str, ...] = ()


@frozen
class GroundedQuestion(Question):
    """A question that comes with passages: SQuAD, gold passages of NQ, HotpotQA, MuSiQue, ClapNQ."""

    passages: tuple[Context, ...] = ()


@frozen
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


@frozen
class GroundedLongQuestion(GroundedQuestion):
    """ClapNQ: a question of Natural Questions with its passage, and long answers grounded in it.

    The annotation has the long answers as aliases of one answer; a question without an answer in its passage has
    none.
    """

    sentences: tuple[tuple[str, ...], ...] = ()
    """The sentences of each passage."""
    long_answers: tuple[GroundedAnswer, ...] = ()


@frozen
class Condition:
    """CondAmbigQA: under this condition these statements answer the question, as these passages say."""

    condition: str
    statements: tuple[str, ...]
    citations: tuple[Context, ...] = ()


@frozen
class ConditionalQuestion(GroundedQuestion):
    """CondAmbigQA. Its answers are statements, not spans: the annotation has one pair for each condition."""

    conditions: tuple[Condition, ...] = ()


@frozen
class ConflictDocument:
    """RAMDocs: a document, whether it is right, and the answer that it gives ("unknown" for noise)."""

    text: str
    kind: DocumentKind
    answer: str


@frozen
class ConflictQuestion(Question):
    """RAMDocs: several right answers, each for another entity of the name, among documents that are wrong.

    `entities` is parallel to the annotation's pairs.
    """

    documents: tuple[ConflictDocument, ...] = ()
    entities: tuple[str, ...] = ()
    wrong_answers: tuple[str, ...] = ()


@frozen
class JudgedQuestion(Question):
    """EfficientQA's test set: the systems' predictions, sorted by people who checked them."""

    surely_correct: tuple[str, ...] = ()
    possibly_correct: tuple[str, ...] = ()
    incorrect: tuple[str, ...] = ()


@frozen
class EntityQuestion(Question):
    """PopQA: asked about `subject`, whose page had `popularity` views in a month; the relation is its kind."""

    subject: str = ""
    popularity: int = 0


@frozen
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
