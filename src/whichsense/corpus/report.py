"""What a reading found: how much of each kind, and what was wrong with the records that were left out."""

from __future__ import annotations

import unicodedata
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

NAMED = 100


class Broken(NamedTuple):
    """A record that was left out: the file, the place in it ("line 7"), and the reason with its fix."""

    file: str
    where: str
    why: str

    def __str__(self) -> str:
        return (
            f"{self.file}, {self.where}: {self.why}"
            if self.where
            else f"{self.file}: {self.why}"
        )


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
        read += [
            _counted(n, what)
            for n, what in ((self.redirects, "redirect"), (self.senses, "sense"))
            if n
        ]
        out = [
            _counted(n, what)
            for n, what in (
                (self.broken, "broken record"),
                (self.duplicates, "duplicate"),
            )
            if n
        ]
        out += (
            [f"{self.passed_over:,} of a kind that is not read"]
            if self.passed_over
            else []
        )
        lines = [", ".join(read)]
        if out:
            lines.append(f"left out: {', '.join(out)}")
        lines += [f"  {_printable(broken)}" for broken in self.named[:examples]]
        if self.broken > examples:
            lines.append(f"  … and {self.broken - examples:,} more")
        if self.rough:
            lines.append(
                f"markup too tangled for the parser, stripped roughly: {_counted(self.rough, 'page')}"
            )
        return "\n".join(lines)


def _printable(broken: Broken) -> str:
    """Without what steers a terminal: names of files and pages may hold anything."""
    return "".join(sign for sign in str(broken) if unicodedata.category(sign) != "Cc")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
