"""Text as it grows line by line, with where each heading's part begins."""

from __future__ import annotations


class Page:
    """Collects lines and headings.

    >>> page = Page()
    >>> page.heading(1, "Birds"); page.line("They fly."); page.heading(2, "Penguins"); page.line("They  swim.")
    >>> page.text
    'Birds\\nThey fly.\\nPenguins\\nThey swim.'
    >>> page.sections
    ((0, 'Birds'), (16, 'Birds > Penguins'))
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.length = 0  # characters, with the line breaks
        self._open: list[tuple[int, str]] = []  # (level, heading), outermost first
        self._sections: list[tuple[int, str]] = []  # (offset, path of headings)

    def line(self, text: str) -> None:
        """One line, its white space made single; an empty one is left out."""
        self.block(" ".join(text.split()))

    def block(self, text: str) -> None:
        """Several lines, as they are."""
        if text and not text.isspace():
            self._lines.append(text)
            self.length += len(text) + 1

    def heading(self, level: int, text: str, shown: bool = True) -> None:
        """A heading opens a section; one above it closes those below. `shown`: it is part of the text too."""
        text = " ".join(text.split())
        if not text:
            return
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        self._open.append((level, text))
        if self._sections and self._sections[-1][0] == self.length:
            self._sections.pop()  # a section without a text of its own
        path = " > ".join(name for _, name in self._open)
        self._sections.append((self.length, path))
        if shown:
            self.line(text)

    @property
    def first_heading(self) -> str:
        if not self._sections:
            return ""
        _, path = self._sections[0]
        return path.rpartition(" > ")[2]

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    @property
    def sections(self) -> tuple[tuple[int, str], ...]:
        return tuple(self._sections)
