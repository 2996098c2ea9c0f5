"""Examples of the support judge: a sentence, a passage, and whether the passage supports it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from whichsense.errors import BadInput
from whichsense.files import read_jsonl, write_atomically

_HELD_OUT = 12  # one group in so many is held out


@dataclass(frozen=True, slots=True)
class SupportExample:
    """A sentence and a passage."""

    claim: str
    title: str
    text: str
    supported: bool
    source: str
    """What it was made from, and how."""
    group: str
    """The topic, question or article: all its examples are learnt from, or none is."""

    @property
    def passage(self) -> str:
        """The passage as the judge takes it."""
        return f"{self.title}\n{self.text}" if self.title else self.text


def is_held_out(example: SupportExample) -> bool:
    """Whether an example is kept to evaluate on."""
    digest = hashlib.sha256(f"support {example.group}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % _HELD_OUT == 0


def split_examples(
    examples: Iterable[SupportExample],
) -> tuple[list[SupportExample], list[SupportExample]]:
    """Examples to learn from, and those that are held out."""
    parts: tuple[list[SupportExample], list[SupportExample]] = ([], [])
    for example in examples:
        parts[is_held_out(example)].append(example)
    return parts


def save_examples(examples: Sequence[SupportExample], path: Path) -> None:
    lines = [json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in examples]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(lines))


def load_examples(path: Path) -> Iterator[SupportExample]:
    for number, row in read_jsonl(path):
        try:
            yield SupportExample(**row)
        except TypeError:
            raise BadInput(
                f"{path}, line {number}: not an example of the support judge. Remove the file: it is built again."
            ) from None
