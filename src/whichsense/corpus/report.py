"""The report of a corpus: how many records of each kind, and what was wrong with those left out."""

from __future__ import annotations

import unicodedata
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

NAMED = 100  # broken records that are named; the rest are counted


class Broken(NamedTuple):
    """A record that was left out: the file, the place in it ("line 7"), and the reason with its fix."""

    file: str
    where: str
    why: str

    def __str__(self) -> str:
        place = f"{self.file}, {self.where}" if self.where else self.file
        return f"{place}: {self.why}"


@dataclass
class Report:
    """Counts of what was read, and the first broken records by name.

    The corpus counts what it reads; `passages` and `duplicates` are counted by whoever cuts and compares.
    """

    documents: int = 0
    redirects: int = 0
    senses: int = 0
    broken: int = 0
    passages: int = 0
    duplicates: int = 0
    passed_over: int = 0
    """Files of a folder that are of no kind that can be read, and index folders in it."""
    rough: int = 0
    """Pages whose markup the parser could not manage and that were stripped by simpler means."""
    named: list[Broken] = field(default_factory=list)

    def add_broken(self, broken: Broken) -> None:
        self.broken += 1
        if len(self.named) < NAMED:
            self.named.append(broken)

    def include(self, other: Report) -> None:
        """Add what another part of the same corpus counted."""
        self.documents += other.documents
        self.redirects += other.redirects
        self.senses += other.senses
        self.broken += other.broken
        self.passages += other.passages
        self.duplicates += other.duplicates
        self.rough += other.rough
        # Files are listed once for the whole corpus.
        self.passed_over = max(self.passed_over, other.passed_over)
        self.named = [*self.named, *other.named][:NAMED]

    def as_dict(self) -> dict[str, Any]:
        """For a checkpoint: plain values that JSON keeps."""
        return {**asdict(self), "named": [list(broken) for broken in self.named]}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Report:
        return cls(**{**saved, "named": [Broken(*broken) for broken in saved["named"]]})

    def summary(self, examples: int = 5) -> str:
        """A few lines for a person.

        >>> report = Report(documents=2, passages=7)
        >>> report.add_broken(Broken("a.jsonl", "line 3", "not valid JSON"))
        >>> print(report.summary())
        2 documents, 7 passages
        left out: 1 broken record
          a.jsonl, line 3: not valid JSON
        """
        read = [
            _counted(self.documents, "document"),
            _counted(self.passages, "passage"),
        ]
        if self.redirects:
            read.append(_counted(self.redirects, "redirect"))
        if self.senses:
            read.append(_counted(self.senses, "sense"))
        left_out = []
        if self.broken:
            left_out.append(_counted(self.broken, "broken record"))
        if self.duplicates:
            left_out.append(_counted(self.duplicates, "duplicate"))
        if self.passed_over:
            left_out.append(f"{self.passed_over:,} of a kind that is not read")
        lines = [", ".join(read)]
        if left_out:
            lines.append(f"left out: {', '.join(left_out)}")
        for broken in self.named[:examples]:
            lines.append(f"  {_printable(broken)}")
        if self.broken > examples:
            lines.append(f"  … and {self.broken - examples:,} more")
        if self.rough:
            lines.append(
                f"markup too tangled for the parser, stripped roughly: {_counted(self.rough, 'page')}"
            )
        return "\n".join(lines)


def _printable(broken: Broken) -> str:
    """Without control characters: names of files and pages may hold anything."""
    characters = []
    for character in str(broken):
        if unicodedata.category(character) != "Cc":
            characters.append(character)
    return "".join(characters)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
