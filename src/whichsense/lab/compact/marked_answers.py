"""Questions over passages, with the place of every answer and of the words that name its case: what a tagger learns."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from whichsense.corpus.cutting import cut
from whichsense.errors import BadConfig
from whichsense.files import read_jsonl
from whichsense.lab.compact.questions import is_held_out
from whichsense.lab.compact.topics import TopicRewrite, Topics, topic_of
from whichsense.lab.datasets import Annotation, QAPair, Question
from whichsense.lab.train.recipes import HOMES
from whichsense.models.compact.labeller import NO_FRAME, frame_between
from whichsense.text.words import SMALL_WORDS, words
from whichsense.types import Document, Passage

_WORD = re.compile(r"\w+")
_AMOUNT = re.compile(r"[€£$] ?(?=\d)")
_CURRENCIES = ("€", "EUR ", "EUR ", "£", "$", "CHF ")
_LONGEST_LABEL = 8  # words
_LITTLE = frozenset(
    "a an the of in on at to for from by with and or is are was were be been do does did has have had as that which "
    "who when it its this their his her".split()
)


@dataclass(frozen=True, slots=True)
class Label:
    """The words that name an answer's case: characters of the title or of the text."""

    start: int
    end: int
    in_title: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's characters in the text, and what is known of its label."""

    start: int
    end: int
    label: Label | None = None
    frame: int = -1
    """The number of the frame that puts the label into the question; -1: not known."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question over one passage."""

    question: str
    title: str
    text: str
    answers: tuple[Answer, ...]
    held_out: bool = False
    """Whether it is not learnt from."""


def find_words(text: str, wanted: str) -> list[tuple[int, int]]:
    """Return where a string stands in a text as whole words, whatever its case."""
    if not wanted.strip():
        return []
    pattern = rf"(?<!\w){re.escape(wanted.strip())}(?!\w)"
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


def find_answers(text: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Return where any name of an answer stands, the longest where several overlap."""
    found = {span for name in names for span in find_words(text, name)}
    kept: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda span: (span[0] - span[1], span)):
        if all(end <= first or start >= last for first, last in kept):
            kept.append((start, end))
    return sorted(kept)


def find_label(title: str, text: str, label: str, near: int) -> Label | None:
    """Return a label's place: in the text, the nearest to a place in it, else in the title."""
    places = [match.start() for match in re.finditer(re.escape(label), text)]
    if places:
        start = min(places, key=lambda place: abs(place - near))
        return Label(start, start + len(label))
    start = title.find(label)
    return Label(start, start + len(label), in_title=True) if start >= 0 else None


def label_of_rewrite(question: str, rewrite: str, support: str) -> str:
    """Return the words of the support that a rewrite adds to its question; empty where they are no short phrase of
    it.

    >>> label_of_rewrite("what is promised", "what is promised on the basic plan", "99.5 per cent on Basic")
    'on Basic'
    """
    asked, told = (set(_WORD.findall(text.casefold())) for text in (question, rewrite))
    added = told - asked
    said = [(m.start(), m.end(), m.group().casefold()) for m in _WORD.finditer(support)]
    telling = [at for at, word in enumerate(said) if word[2] in added - _LITTLE]
    if not telling or telling[-1] - telling[0] >= _LONGEST_LABEL:
        return ""
    first = telling[0]
    # A preposition before it belongs to it, if the rewrite has it too.
    if first and said[first - 1][2] in added & _LITTLE:
        first -= 1
    return support[said[first][0] : said[telling[-1]][1]]


# Where marked answers come from: folders of firms, and topics with rewrites.

_HELD_OUT = 5  # one firm or topic in so many
_BESIDE = 2  # passages without an answer that are read for a question
_OF_UNANSWERED = 3  # passages that are read for a question without an answer
_Places = defaultdict[str, list[Answer]]


def load_firms(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the firms of a folder. Each has one spelling of its amounts, by its name: a reader's corpus may have
    any."""
    for path in sorted(folder.glob("**/*.jsonl")):
        for _, firm in read_jsonl(path):
            currency = random.Random(firm["id"]).choice(_CURRENCIES)
            text = json.dumps(firm, ensure_ascii=False)
            yield json.loads(_AMOUNT.sub(currency, text))


def mark_firms(folder: Path, rewrites: float = 0.0) -> Iterator[Example]:
    """Yield the questions of a folder of firms, this share of them again as a true rewrite with its answer alone; and
    near misses."""
    for firm in load_firms(folder):
        passages = firm_passages(firm)
        held_out = is_held_out(firm["id"], _HELD_OUT)
        for row in firm["questions"]:
            marked = _marks_in_firm(firm, passages, row["q"], row["a"])
            yield from _around(row["q"], passages, marked, held_out)
            told = [one for one in row["a"] if one.get("r")]
            rng = random.Random(row["q"])
            if told and not held_out and rng.random() < rewrites:
                one = rng.choice(told)
                alone = _marks_in_firm(firm, passages, row["q"], [one])
                yield from _around(one["r"], passages, alone, held_out)
        for text in firm["none"]:
            yield from _around(text, passages, {}, held_out, _OF_UNANSWERED)


def read_firm_corpora(
    folder: Path, *, held_out: bool = False
) -> Iterator[tuple[list[Passage], list[Question]]]:
    """Yield the passages and the questions of each firm that is held out, or of each that is not."""
    for firm in load_firms(folder):
        if is_held_out(firm["id"], _HELD_OUT) == held_out:
            yield firm_passages(firm), list(_firm_questions(firm))


def _firm_questions(firm: Mapping[str, Any]) -> Iterator[Question]:
    for number, row in enumerate(firm["questions"]):
        # One value for two cases is one answer.
        distinct = {answer["x"][0].casefold(): tuple(answer["x"]) for answer in row["a"]}
        pairs = [QAPair(names) for names in distinct.values()]
        several = len(pairs) > 1
        annotation = Annotation("multipleQAs" if several else "singleAnswer", tuple(pairs))
        yield Question(f"{firm['id']}-q{number}", row["q"], (annotation,))
    for number, text in enumerate(firm["none"]):
        yield Question(f"{firm['id']}-n{number}", text, ())


def firm_passages(firm: Mapping[str, Any]) -> list[Passage]:
    """Return the documents of a firm, cut as an index cuts them."""
    passages: list[Passage] = []
    for row in firm["documents"]:
        passages += cut(Document(f"{firm['id']}-{row['id']}", row["title"], row["text"]))
    return passages


def _marks_in_firm(
    firm: Mapping[str, Any],
    passages: Sequence[Passage],
    question: str,
    answers: Iterable[Mapping[str, Any]],
) -> _Places:
    """Return the places of answers in each passage of their firm."""
    marked: _Places = defaultdict(list)
    for answer in answers:
        # A document of one passage has no number in its passage's id.
        name = f"{firm['id']}-{answer['d']}"
        own = [passage for passage in passages if passage.id.partition("#")[0] == name]
        text = next(row["text"] for row in firm["documents"] if row["id"] == answer["d"])
        told = _Told(question, answer.get("l", ""), answer.get("r", ""))
        for passage, plain in _place_in_document(text, own, answer):
            marked[passage.id].append(told.label_of(plain, passage, plain.start))
    return marked


def _place_in_document(
    text: str, passages: Sequence[Passage], answer: Mapping[str, Any]
) -> Iterator[tuple[Passage, Answer]]:
    """Yield the first passage with an answer's first name, from its support on, if there is one."""
    first = max(text.find(answer.get("s") or ""), 0)
    places = [span for span in find_answers(text, answer["x"][:1]) if span[0] >= first]
    for start, end in places[:1]:
        for passage in passages:
            if passage.start <= start and end <= passage.end:
                yield passage, Answer(start - passage.start, end - passage.start)
                return


@dataclass(frozen=True, slots=True)
class _Told:
    """The label of an answer to a question, and the rewrite with it; empty where there is none."""

    question: str
    label: str
    rewrite: str

    def label_of(self, answer: Answer, passage: Passage, near: int) -> Answer:
        """Return the answer with its label, where its passage has that apart from it, and the rewrite's frame."""
        if not self.label:
            return answer
        place = find_label(passage.title, passage.text, self.label, near)
        if place is None or (
            not place.in_title and place.start < answer.end and answer.start < place.end
        ):
            return answer
        frame = NO_FRAME
        if self.rewrite:
            frame = frame_between(self.question, self.rewrite, self.label)
        return replace(answer, label=place, frame=frame)


def _around(
    question: str,
    passages: Sequence[Passage],
    marked: Mapping[str, Sequence[Answer]],
    held_out: bool,
    beside: int = _BESIDE,
) -> Iterator[Example]:
    """Yield the question over all passages that hold an answer, and over those without one that are most like it."""
    without = []
    for passage in passages:
        own = without_overlaps(marked.get(passage.id, ()))
        if own:
            yield Example(question, passage.title, passage.text, own, held_out)
        else:
            without.append(passage)
    asked = set(words(question)) - SMALL_WORDS
    without.sort(key=lambda one: -len(asked.intersection(words(f"{one.title} {one.text}"))))
    for passage in without[:beside]:
        yield Example(question, passage.title, passage.text, (), held_out)


def without_overlaps(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    kept: list[Answer] = []
    for answer in sorted(answers, key=lambda one: (one.start, -one.end)):
        if not kept or answer.start >= kept[-1].end:
            kept.append(answer)
    return tuple(kept)


def mark_topics(
    folders: Sequence[Path], left_out: Iterable[str] = (), rewrites: float = 0.0
) -> Iterator[Example]:
    """Yield the questions of topics but those of `left_out`, this share of them again as a true rewrite with its answer
    alone. A rewrite and its support give an answer's label."""
    topics = Topics.read(folders)
    skipped = set(left_out)
    by_topic: defaultdict[str, list[Passage]] = defaultdict(list)
    for passage in topics.passages:
        by_topic[topic_of(passage.id)].append(passage)
    for question in topics.questions:
        if question.text in skipped:
            continue
        topic = topic_of(question.id)
        held_out = is_held_out(topic, _HELD_OUT)
        groups = question.annotations[0].answers if question.annotations else ()
        true = [one for one in topics.rewrites.get(question.id, ()) if not one.kind]
        marked = _marks_in_topic(question.text, by_topic[topic], groups, true)
        yield from _around(question.text, by_topic[topic], marked, held_out)
        rng = random.Random(question.id)
        if true and not held_out and rng.random() < rewrites:
            one = rng.choice(true)
            alone = _marks_in_topic(one.question, by_topic[topic], [groups[one.answer]], ())
            yield from _around(one.question, by_topic[topic], alone, held_out)


def _marks_in_topic(
    question: str,
    passages: Sequence[Passage],
    groups: Sequence[Sequence[str]],
    rewrites: Sequence[TopicRewrite],
) -> _Places:
    """Return the places of the answers in each passage. The one next to the support of the answer's first rewrite gets
    the label that the rewrite took from there."""
    marked: _Places = defaultdict(list)
    for passage in passages:
        for number, names in enumerate(groups):
            own = {start: Answer(start, end) for start, end in find_answers(passage.text, names)}
            told = [one for one in rewrites if (one.answer, one.passage) == (number, passage.id)]
            label = label_of_rewrite(question, told[0].question, told[0].support) if told else ""
            if own and label:
                near = max(passage.text.find(told[0].support), 0)
                start = min(own, key=lambda place: abs(place - near))
                told_of = _Told(question, label, told[0].question)
                own[start] = told_of.label_of(own[start], passage, near)
            marked[passage.id] += own.values()
    return marked


def find_firms(names: Sequence[str]) -> list[Path]:
    """Folders by name. Raise BadConfig for one that is not there."""
    found = []
    for name in names:
        homes = [home / name for home in (Path(), *HOMES)]
        folder = next((one for one in homes if any(one.glob("*.jsonl"))), None)
        if folder is None:
            raise BadConfig(
                f"firms: there is no folder '{name}' with .jsonl files. 'firms' ships with the recipes."
            )
        found.append(folder)
    return found
