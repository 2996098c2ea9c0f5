"""The records that datasets share: a question, its annotations, and the passages that come with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from whichsense.text.words import normalize

# AmbigNQ's own names, which its files have
AnnotationKind = Literal["singleAnswer", "multipleQAs"]


@dataclass(frozen=True, slots=True)
class Record:
    """One item of a dataset: a question, or a claim to verify."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    """Every rewrite that annotators wrote, as a question of its own with one answer.

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
