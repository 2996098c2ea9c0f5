"""Questions over passages, with the place of every answer and of the words that name its case: what a tagger learns."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense.corpus.cutting import cut
from whichsense.errors import BadConfig
from whichsense.files import read_jsonl
from whichsense.lab.compact.questions import is_held_out
from whichsense.lab.compact.topics import Topics, topic_of
from whichsense.lab.datasets import Annotation, QAPair, Question
from whichsense.lab.train.recipes import HOMES
from whichsense.models.compact.labeller import NO_FRAME, frame_between
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
    """Where a string stands in a text as whole words, whatever its case."""
    if not wanted.strip():
        return []
    pattern = rf"(?<!\w){re.escape(wanted.strip())}(?!\w)"
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


def find_answers(text: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Where any name of an answer stands, the longest where several overlap."""
    found = {span for name in names for span in find_words(text, name)}
    kept: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda span: (span[0] - span[1], span)):
        if all(end <= first or start >= last for first, last in kept):
            kept.append((start, end))
    return sorted(kept)


def find_label(title: str, text: str, label: str, near: int) -> Label | None:
    """A label's place: in the text, the nearest to a place in it, else in the title."""
    places = [match.start() for match in re.finditer(re.escape(label), text)]
    if places:
        start = min(places, key=lambda place: abs(place - near))
        return Label(start, start + len(label))
    start = title.find(label)
    return Label(start, start + len(label), in_title=True) if start >= 0 else None


def label_of_rewrite(question: str, rewrite: str, support: str) -> str:
    """The words of the support that a rewrite adds to its question; empty where they are no short phrase of it.

    >>> label_of_rewrite("what is promised", "what is promised on the basic plan", "99.5 per cent on Basic")
    'on Basic'
    """
    asked = {match.group().casefold() for match in _WORD.finditer(question)}
    added = set()
    for match in _WORD.finditer(rewrite):
        if match.group().casefold() not in asked:
            added.add(match.group().casefold())
    words = [(m.start(), m.end(), m.group().casefold()) for m in _WORD.finditer(support)]
    telling = [at for at, word in enumerate(words) if word[2] in added - _LITTLE]
    if not telling or telling[-1] - telling[0] >= _LONGEST_LABEL:
        return ""
    first = telling[0]
    # A preposition before it belongs to it, if the rewrite has it too.
    if first and words[first - 1][2] in added and words[first - 1][2] in _LITTLE:
        first -= 1
    return support[words[first][0] : words[telling[-1]][1]]


# Where labelled answers come from: folders of firms, and topics with rewrites.

_HELD_OUT = 5  # one firm or topic in so many
_Places = defaultdict[str, list[Answer]]


def load_firms(folder: Path) -> Iterator[dict[str, Any]]:
    """The firms of a folder. Each has one spelling of its amounts, by its name: a reader's corpus may have any."""
    for path in sorted(folder.glob("**/*.jsonl")):
        for _, firm in read_jsonl(path):
            currency = random.Random(firm["id"]).choice(_CURRENCIES)
            text = json.dumps(firm, ensure_ascii=False)
            yield json.loads(_AMOUNT.sub(currency, text))


def read_firms(folder: Path) -> Iterator[Example]:
    """The questions of a folder of firms, over the passages of their firm that hold labelled answers."""
    for firm in load_firms(folder):
        yield from _firm_examples(firm)


def read_firm_corpora(
    folder: Path, *, held_out: bool = False
) -> Iterator[tuple[list[Passage], list[Question]]]:
    """The passages and the questions of each firm that is held out, or of each that is not."""
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
    """The documents of a firm, cut as an index cuts them."""
    passages: list[Passage] = []
    for row in firm["documents"]:
        passages += cut(Document(f"{firm['id']}-{row['id']}", row["title"], row["text"]))
    return passages


def _firm_examples(firm: Mapping[str, Any]) -> Iterator[Example]:
    passages = firm_passages(firm)
    held_out = is_held_out(firm["id"], _HELD_OUT)
    for row in firm["questions"]:
        marked = marks_in_firm(firm, passages, row)
        for passage in passages:
            own = without_overlaps(marked.get(passage.id, ()))
            if _has_label(own):
                yield Example(row["q"], passage.title, passage.text, own, held_out)


def marks_in_firm(
    firm: Mapping[str, Any], passages: Sequence[Passage], row: Mapping[str, Any]
) -> _Places:
    """The places of a question's answers in each passage of its firm."""
    marked: _Places = defaultdict(list)
    for answer in row["a"]:
        for passage, place in _find_in_firm(firm, passages, row["q"], answer):
            marked[passage.id].append(place)
    return marked


def _has_label(answers: Iterable[Answer]) -> bool:
    return any(answer.label is not None for answer in answers)


def _find_in_firm(
    firm: Mapping[str, Any], passages: Sequence[Passage], question: str, answer: Mapping[str, Any]
) -> Iterator[tuple[Passage, Answer]]:
    """An answer's place in the passage that holds it, with its label where the passage holds that, too."""
    document = next(row for row in firm["documents"] if row["id"] == answer["d"])
    text = document["text"]
    first = text.find(answer["s"]) if answer.get("s") else 0
    places = [span for span in find_answers(text, answer["x"][:1]) if span[0] >= max(first, 0)]
    if not places:
        return
    start, end = places[0]
    for passage in passages:
        # A document of one passage has no number in its passage's id.
        if passage.id.partition("#")[0] != f"{firm['id']}-{answer['d']}":
            continue
        if passage.start <= start and end <= passage.end:
            at = start - passage.start
            label = frame = None
            if answer.get("l"):
                label = find_label(passage.title, passage.text, answer["l"], at)
                if label and not label.in_title and _overlap(label, at, end - start):
                    label = None
            if label is not None:
                frame = NO_FRAME
                if answer.get("r"):
                    frame = frame_between(question, answer["r"], answer["l"])
            length = end - start
            yield (passage, Answer(at, at + length, label, -1 if frame is None else frame))
            return


def _overlap(label: Label, start: int, length: int) -> bool:
    return label.start < start + length and start < label.end


def without_overlaps(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    kept: list[Answer] = []
    for answer in sorted(answers, key=lambda one: (one.start, -one.end)):
        if not kept or answer.start >= kept[-1].end:
            kept.append(answer)
    return tuple(kept)


def read_topics(folders: Sequence[Path], left_out: Iterable[str] = ()) -> Iterator[Example]:
    """The questions of topics over their own passages; a true rewrite and its support give an answer's label. Questions
    among `left_out` are left out."""
    topics = Topics.read(folders)
    skipped = set(left_out)
    rewrites = read_rewrites(folders)
    by_topic: defaultdict[str, list[Passage]] = defaultdict(list)
    for passage in topics.passages:
        by_topic[topic_of(passage.id)].append(passage)
    for question in topics.questions:
        lines = rewrites.get(question.id)
        if question.text in skipped or lines is None or not question.annotations:
            continue
        topic = topic_of(question.id)
        held_out = is_held_out(topic, _HELD_OUT)
        groups = question.annotations[0].answers
        marked = _mark_topic(question.text, by_topic[topic], groups, lines["true"])
        for passage in by_topic[topic]:
            own = without_overlaps(marked.get(passage.id, ()))
            if _has_label(own):
                yield Example(question.text, passage.title, passage.text, own, held_out)


def _mark_topic(
    question: str,
    passages: Sequence[Passage],
    groups: Sequence[Sequence[str]],
    rewrites: Sequence[Mapping[str, Any]],
) -> _Places:
    """The places of the answers in each passage; a true rewrite with its support gives the label."""
    marked: _Places = defaultdict(list)
    for passage in passages:
        for number, names in enumerate(groups):
            spans = find_answers(passage.text, names)
            supported = [
                line
                for line in rewrites
                if line["answer"] == number and line.get("passage") == passage.id
            ]
            labelled = _label_answer(question, passage, spans, supported)
            for start, end in spans:
                plain = Answer(start, end)
                marked[passage.id].append(labelled.get(start, plain))
    return marked


def _label_answer(
    question: str,
    passage: Passage,
    spans: Sequence[tuple[int, int]],
    rewrites: Sequence[Mapping[str, Any]],
) -> dict[int, Answer]:
    """The answer next to a rewrite's support, with the label that the rewrite took from it."""
    labelled = {}
    for line in rewrites[:1]:
        text = label_of_rewrite(question, line["question"], line.get("support", ""))
        at = passage.text.find(line.get("support", ""))
        if not text or not spans:
            continue
        start, end = min(spans, key=lambda span: abs(span[0] - max(at, 0)))
        label = find_label(passage.title, passage.text, text, max(at, 0))
        if label and (label.in_title or not _overlap(label, start, end - start)):
            frame = frame_between(question, line["question"], text)
            labelled[start] = Answer(start, end, label, frame)
    return labelled


def read_rewrites(folders: Sequence[Path]) -> dict[str, dict[str, Any]]:
    rewrites = {}
    for folder in folders:
        for name in ("rewrites.jsonl", "rewrites.jsonl.xz"):
            if (folder / name).exists():
                for _, row in read_jsonl(folder / name):
                    rewrites[row["id"]] = row
    return rewrites


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
