"""What a dataset gives: one kind of question for all of them, and a few that know more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from whichsense.text.words import normalize

AnnotationKind = Literal["singleAnswer", "multipleQAs"]


@dataclass(frozen=True, slots=True)
class QAPair:
    """One answer with its aliases and, where annotators wrote one, the rewrite that it answers."""

    answers: tuple[str, ...]
    questions: tuple[str, ...] = ()
    """The rewrite, and other accepted wordings of it (AmbigNQ writes them in one string, split by `|`)."""
    evidence: tuple[str, ...] = ()
    """Ids of the passages that hold the answer, where they are known."""

    @property
    def question(self) -> str:
        """The rewrite as it is shown to people; empty where there is none."""
        return self.questions[0] if self.questions else ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one annotator said: one answer to the question as it stands, or a rewrite for each of several."""

    kind: AnnotationKind
    pairs: tuple[QAPair, ...]

    @property
    def is_single(self) -> bool:
        return self.kind == "singleAnswer"

    @property
    def answers(self) -> tuple[tuple[str, ...], ...]:
        """The aliases of each answer."""
        return tuple(pair.answers for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what annotators found. No annotation means that there is no answer to be found.

    >>> dance = QAPair(("Baryshnikov", "Mikhail Baryshnikov"))
    >>> both = (Annotation("singleAnswer", (dance,)), Annotation("singleAnswer", (QAPair(("mikhail baryshnikov",)),)))
    >>> Question("1", "Who danced?", both).answers
    (('Baryshnikov', 'Mikhail Baryshnikov', 'mikhail baryshnikov'),)
    """

    id: str
    text: str
    annotations: tuple[Annotation, ...] = ()
    kinds: tuple[str, ...] = ()
    """What makes it ambiguous, or what it asks for, where the dataset says so."""

    @property
    def is_answerable(self) -> bool:
        return bool(self.annotations)

    @property
    def is_ambiguous(self) -> bool:
        """True where no annotator was content with one answer: the official script's "multi" questions."""
        return bool(self.annotations) and not any(
            annotation.is_single for annotation in self.annotations
        )

    @property
    def several(self) -> Annotation | None:
        """The first annotation with several readings, each with a rewrite."""
        return next(
            (
                one
                for one in self.annotations
                if not one.is_single and len(one.pairs) > 1
            ),
            None,
        )

    @property
    def answer_sets(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """For each annotation the aliases of each answer: what F1ans is computed against."""
        return tuple(annotation.answers for annotation in self.annotations)

    @property
    def answers(self) -> tuple[tuple[str, ...], ...]:
        """Every distinct answer of all annotations with its aliases; answers that share an alias are one."""
        return merged([aliases for answers in self.answer_sets for aliases in answers])


def merged(answers: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Alias lists joined wherever two of them share an alias, so that each distinct answer is there once.

    >>> merged([("NYC",), ("Boston",), ("New York", "nyc")])
    (('NYC', 'New York', 'nyc'), ('Boston',))
    """
    groups: list[tuple[dict[str, None], set[str]]] = []
    for aliases in answers:
        names, keys = dict.fromkeys(aliases), {normalize(alias) for alias in aliases}
        joined = [group for group in groups if group[1] & keys]
        if not joined:
            groups.append((names, keys))
            continue
        first, *others = joined
        for group in [*others, (names, keys)]:
            first[0].update(group[0])
            first[1].update(group[1])
        groups = [
            group for group in groups if not any(group is other for other in others)
        ]
    return tuple(tuple(names) for names, _ in groups)


def rewrites_of(question: Question) -> list[Question]:
    """Every rewrite that annotators wrote, as a question of its own with one answer.

    >>> pairs = (QAPair(("1924",), ("When did the winter games begin?",)), QAPair(("1896",)))
    >>> asked = Question("7", "When did the games begin?", (Annotation("multipleQAs", pairs),))
    >>> [(one.id, one.text, one.answers) for one in rewrites_of(asked)]
    [('7/0', 'When did the winter games begin?', (('1924',),))]
    """
    pairs = [
        pair
        for annotation in question.annotations
        if not annotation.is_single
        for pair in annotation.pairs
    ]
    found = dict.fromkeys(
        (text, pair.answers)
        for pair in pairs
        for text in pair.questions
        if text and pair.answers
    )
    return [
        Question(
            f"{question.id}/{number}",
            text,
            (Annotation("singleAnswer", (QAPair(answers),)),),
        )
        for number, (text, answers) in enumerate(found)
    ]


@dataclass(frozen=True, slots=True)
class Context:
    """A passage that comes with a question; `gold` where annotators said that it answers."""

    title: str
    text: str
    gold: bool = False


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What an annotator typed, and the passages that the search engine showed (title and snippet)."""

    query: str
    results: tuple[Context, ...]


@dataclass(frozen=True, slots=True)
class FullQuestion(Question):
    """AmbigNQ's full release: how the annotators searched, and what Natural Questions had answered."""

    viewed_titles: tuple[str, ...] = ()
    searches: tuple[SearchQuery, ...] = ()
    nq_answers: tuple[str, ...] = ()
    nq_title: str = ""


@dataclass(frozen=True, slots=True)
class ClarifiedQuestion(FullQuestion):
    """CAmbigNQ: the question that asks back, and the answers (aliases) of its options in their order."""

    clarification: str = ""
    clarified_answers: tuple[tuple[str, ...], ...] = ()
    category: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LongReference:
    """A long answer by one annotator, with the pieces of Wikipedia that they added to the given ones."""

    text: str
    knowledge: tuple[Context, ...] = ()


@dataclass(frozen=True, slots=True)
class LongQuestion(Question):
    """ASQA: the disambiguations are the annotation; `contexts` and the pages that they are from lie beside its pairs
    (empty where none was given)."""

    long_answers: tuple[LongReference, ...] = ()
    contexts: tuple[str, ...] = ()
    context_pages: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()


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
    """A question that comes with passages: SQuAD, gold passages of NQ, HotpotQA, MuSiQue."""

    passages: tuple[Context, ...] = ()


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
class JudgedQuestion(Question):
    """EfficientQA's test set: what systems answered, sorted by people who checked it."""

    surely_correct: tuple[str, ...] = ()
    possibly_correct: tuple[str, ...] = ()
    incorrect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntityQuestion(Question):
    """PopQA: asked about `subject`, whose page had `popularity` views in a month; the relation is its kind."""

    subject: str = ""
    popularity: int = 0
