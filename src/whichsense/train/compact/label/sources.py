"""Where labelled answers come from: folders of firms, and topics with rewrites."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from whichsense.corpus.cutting import cut
from whichsense.datasets import Annotation, QAPair, Question
from whichsense.errors import BadConfig
from whichsense.files import read_jsonl
from whichsense.models.compact.label.frames import NO_FRAME, frame_between
from whichsense.train.compact.data.questions import is_held_out
from whichsense.train.compact.data.topics import Topics, topic_of
from whichsense.train.compact.label.examples import (
    Answer,
    Example,
    Label,
    find_answers,
    find_label,
    label_of_rewrite,
)
from whichsense.train.recipes.files import HOMES
from whichsense.types import Document, Passage

_HELD_OUT = 5  # one firm or topic in so many
_Places = defaultdict[str, list[Answer]]


def read_firms(folder: Path) -> Iterator[Example]:
    """The questions of a folder of firms, over the passages of their firm that hold labelled answers."""
    for path in sorted(folder.glob("*.jsonl")):
        for _, firm in read_jsonl(path):
            yield from _firm_examples(firm)


def read_firm_corpora(
    folder: Path, *, held_out: bool = False
) -> Iterator[tuple[list[Passage], list[Question]]]:
    """The passages and the questions of each firm that is held out, or of each that is not."""
    for path in sorted(folder.glob("**/*.jsonl")):
        for _, firm in read_jsonl(path):
            if is_held_out(firm["id"], _HELD_OUT) == held_out:
                yield firm_passages(firm), list(_firm_questions(firm))


def _firm_questions(firm: Mapping[str, Any]) -> Iterator[Question]:
    for number, row in enumerate(firm["questions"]):
        # One value for two cases is one answer.
        distinct = {
            answer["x"][0].casefold(): tuple(answer["x"]) for answer in row["a"]
        }
        pairs = [QAPair(names) for names in distinct.values()]
        several = len(pairs) > 1
        annotation = Annotation(
            "multipleQAs" if several else "singleAnswer", tuple(pairs)
        )
        yield Question(f"{firm['id']}-q{number}", row["q"], (annotation,))
    for number, text in enumerate(firm["none"]):
        yield Question(f"{firm['id']}-n{number}", text, ())


def firm_passages(firm: Mapping[str, Any]) -> list[Passage]:
    """The documents of a firm, cut as an index cuts them."""
    passages: list[Passage] = []
    for row in firm["documents"]:
        passages += cut(
            Document(f"{firm['id']}-{row['id']}", row["title"], row["text"])
        )
    return passages


def _firm_examples(firm: Mapping[str, Any]) -> Iterator[Example]:
    passages = firm_passages(firm)
    held_out = is_held_out(firm["id"], _HELD_OUT)
    for row in firm["questions"]:
        marked: _Places = defaultdict(list)
        for answer in row["a"]:
            for passage, place in _find_in_firm(firm, passages, row["q"], answer):
                marked[passage.id].append(place)
        for passage in passages:
            own = _without_overlaps(marked.get(passage.id, ()))
            if _has_label(own):
                yield Example(row["q"], passage.title, passage.text, own, held_out)


def _has_label(answers: Iterable[Answer]) -> bool:
    return any(answer.label is not None for answer in answers)


def _find_in_firm(
    firm: Mapping[str, Any],
    passages: Sequence[Passage],
    question: str,
    answer: Mapping[str, Any],
) -> Iterator[tuple[Passage, Answer]]:
    """An answer's place in the passage that holds it, with its label where the passage holds that, too."""
    document = next(row for row in firm["documents"] if row["id"] == answer["d"])
    text = document["text"]
    first = text.find(answer["s"]) if answer.get("s") else 0
    places = [
        span for span in find_answers(text, answer["x"][:1]) if span[0] >= max(first, 0)
    ]
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
            yield (
                passage,
                Answer(at, at + length, label, -1 if frame is None else frame),
            )
            return


def _overlap(label: Label, start: int, length: int) -> bool:
    return label.start < start + length and start < label.end


def _without_overlaps(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    kept: list[Answer] = []
    for answer in sorted(answers, key=lambda one: (one.start, -one.end)):
        if not kept or answer.start >= kept[-1].end:
            kept.append(answer)
    return tuple(kept)


def read_topics(
    folders: Sequence[Path], left_out: Iterable[str] = ()
) -> Iterator[Example]:
    """The questions of topics over their own passages; a true rewrite and its support give an answer's label. Questions
    among `left_out` are left out."""
    topics = Topics.read(folders)
    skipped = set(left_out)
    rewrites = _read_rewrites(folders)
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
            own = _without_overlaps(marked.get(passage.id, ()))
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


def _read_rewrites(folders: Sequence[Path]) -> dict[str, dict[str, Any]]:
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
