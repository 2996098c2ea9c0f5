"""Show answers, questions back and stories: a document of blocks, written for a terminal, as Markdown or as plain text.

The JSON of an answer is its record's own: `Case.to_json`, `Conversation.to_json`.

>>> reading = Reading("Who made Dune?", "Lynch", confidence=0.9, label="the 1984 film")
>>> print(PLAIN.write(show_readings([reading], "Who made Dune?")))
  1. Lynch  90%
     the 1984 film
>>> print(MARKDOWN.write(show_readings([reading], "Who made Dune?")))
1. **Lynch**  90%
   the 1984 film
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from whichsense.text.clarification import say_dependence
from whichsense.text.words import excerpt, sentence_at, supporting_spans
from whichsense.types import Case, Clarification, Hit, Passage, Reading, Span

HOW_TO_REPLY = "A number, a few words, several, “all” or “none”. An empty line shows every reading."
_NEAREST = 3  # passages that are shown if there is no answer
_LONGEST_SENTENCE = 300
_LONGEST_PASSAGE = 600
_LONGEST_CITED = 1200
_MARK = "\ue000"  # at both ends of what is marked, while it is cut
_BODY = 5  # spaces before what belongs to a numbered line

# A document: blocks of lines, and in each line runs of text in a style.

STRONG, DIM, MARKED = "strong", "dim", "marked"


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of a line in one style."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line, numbered if it is an item of a list; `indent` is its distance from the margin, and that of what is
    wrapped unless `hang` says more."""

    runs: tuple[Run, ...]
    number: int = 0
    indent: int = 0
    hang: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together. A blank line follows, unless the next block continues this one."""

    lines: tuple[Line, ...]
    continues: bool = False


def _line(*parts: str | Run, number: int = 0, indent: int = 0, hang: int = 0) -> Line:
    runs = tuple(Run(part) if isinstance(part, str) else part for part in parts)
    return Line(runs, number, indent, hang)


def say(text: str) -> list[Block]:
    """Return the lines of a message as one block; none of an empty one."""
    lines = tuple(_line(line, hang=3) for line in text.splitlines())
    return [Block(lines)] if lines else []


# The formats.


def printable(text: str) -> str:
    """Remove control characters, which could control the terminal; white space among them becomes a space.

    >>> printable("Who\\tsang\\nit\\x1b[0m?")
    'Who sang it[0m?'
    """
    characters = []
    for character in text:
        if character.isprintable():
            characters.append(character)
        elif character.isspace():
            characters.append(" ")
    return "".join(characters)


_MARKUP = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#~"})


def _escaped(text: str) -> str:
    return printable(text).translate(_MARKUP)


@dataclass(frozen=True, slots=True)
class Format:
    """How a document is written: what is around a style, how text is escaped, where lines are wrapped."""

    around: Mapping[str, tuple[str, str]]
    escape: Callable[[str], str] = printable
    width: int = 0
    """Columns; 0 for no wrapping."""
    margin: str = "{number:>3}. "
    body: int = field(default=0)
    """Spaces before what belongs to a numbered line; 0 as the line says."""

    def write(self, blocks: Sequence[Block]) -> str:
        """Return a document as text, without a line break at its end."""
        written = []
        for place, block in enumerate(blocks):
            written += [self._write_line(line) for line in block.lines]
            if not block.continues and place < len(blocks) - 1:
                written.append("")
        return "\n".join(written)

    def _write_line(self, line: Line) -> str:
        text = ""
        for run in line.runs:
            before, after = self.around.get(run.style, ("", ""))
            text += f"{before}{self.escape(run.text)}{after}"
        if line.number:
            return self.margin.format(number=line.number) + text
        indent = " " * (self.body if self.body and line.indent else line.indent)
        if not self.width or any(run.style in (STRONG, DIM) for run in line.runs):
            return indent + text
        return textwrap.fill(
            text,
            self.width,
            initial_indent=indent,
            subsequent_indent=indent + " " * line.hang,
            break_long_words=False,
        )


_STARS = ("*", "*")
TERMINAL = Format(
    {STRONG: ("\x1b[1m", "\x1b[0m"), DIM: ("\x1b[2m", "\x1b[0m"), MARKED: _STARS}, width=100
)
MARKDOWN = Format({STRONG: ("**", "**"), MARKED: _STARS}, _escaped, margin="{number}. ", body=3)
PLAIN = Format({MARKED: _STARS})


# What is shown of each record.


def show_case(case: Case, k: int | None = None, show_possible: bool = False) -> list[Block]:
    """Return a question with at most k of its readings, then those that are merely possible or their number."""
    shown = case.readings[:k]
    head = [_head(case)]
    if case.has_several_readings:
        head.append(_line(say_dependence(case.clarification)))
    blocks = [Block(tuple(head), continues=True)]
    blocks += show_readings(shown, case.question, is_tentative=case.is_tentative)
    if not case.readings:
        blocks.append(_unanswered(case))
    elif case.possible and show_possible:
        blocks.append(Block((_line("Merely possible:"),), continues=True))
        blocks += show_readings(case.possible, case.question, len(shown) + 1)
    elif case.possible:
        blocks.append(Block((_folded(len(case.possible)),)))
    return blocks + [Block((_line(f"Note. {note}", indent=_BODY),)) for note in case.notes]


def _head(case: Case) -> Line:
    """Return the question, why it was stopped, and whether a single reading is all that was found."""
    more = f"  (stopped: {case.stopped})" if case.stopped else ""
    if len(case.readings) == 1 and not case.is_tentative:
        more += f"  (one reading{' is probable' if case.possible else ''})"
    return _line(Run(case.question, STRONG), more)


def _folded(count: int) -> Line:
    """Return how many readings are merely possible."""
    if count == 1:
        return _line("+ 1 more that is merely possible (--all shows it)", indent=2)
    return _line(f"+ {count} more that are merely possible (--all shows them)", indent=2)


def _unanswered(case: Case) -> Block:
    """Return that there is no answer, and the passages that came nearest."""
    reason = "Stopped before it was answered." if case.stopped else "No answer found."
    lines = [_line(f"{reason}{' Nearest passages:' if case.hits else ''}")]
    for hit in case.hits[:_NEAREST]:
        beginning = _shorten(hit.passage.text, _LONGEST_SENTENCE)
        lines.append(_line(f"{hit.passage.title}: {beginning}", indent=_BODY))
    return Block(tuple(lines))


def show_readings(
    readings: Sequence[Reading], asked: str, first: int = 1, *, is_tentative: bool = False
) -> list[Block]:
    """Return a block for each reading of the question that was asked, numbered; a tentative one is called so."""
    blocks = []
    for number, reading in enumerate(readings, first):
        answer = Run(reading.answer, STRONG)
        perhaps = "Perhaps: " if is_tentative else ""
        lines = [_line(perhaps, answer, f"  {reading.confidence:.0%}", number=number)]
        told = reading.told_apart(asked)
        if told:
            lines.append(_line(told, indent=_BODY))
        if reading.evidence:
            lines.append(_evidence(reading.evidence[0], reading.answer))
        blocks.append(Block(tuple(lines)))
    return blocks


def _evidence(span: Span, answer: str) -> Line:
    """Return the sentence of an answer, and its title, with the answer marked."""
    title, text = span.passage.title, span.passage.text
    if span.start == span.end:  # the answer is in the title
        return _line(
            f"{_shorten(text, _LONGEST_SENTENCE)}  [", *_marked(title, answer), "]", indent=_BODY
        )
    before, found, after = excerpt(text, span.start, span.end, _LONGEST_SENTENCE)
    before, after = (re.sub(r"\s+", " ", part) for part in (before, after))
    marked = Run(" ".join(found.split()), MARKED)
    return _line(before.lstrip(), marked, f"{after.rstrip()}  [{title}]", indent=_BODY)


def _marked(title: str, answer: str) -> tuple[Run, ...]:
    """Return a title with the answer in it marked; all of it if it has the answer in other words."""
    start = title.lower().find(answer.lower())
    if start < 0:
        return (Run(title, MARKED),)
    end = start + len(answer)
    return Run(title[:start]), Run(title[start:end], MARKED), Run(title[end:])


def show_clarification(clarification: Clarification) -> list[Block]:
    """Return the question back with its numbered options, and how to reply."""
    lines = [_line(Run(f"{clarification.lead}?", STRONG))]
    for number, option in enumerate(clarification.options, 1):
        lines.append(_line(option.label, number=number))
        if option.description:
            about = _shorten(option.description, 100 - _BODY)
            lines.append(_line(Run(f"{' ' * _BODY}{about}", DIM)))
    return [Block((*lines, _line(Run(HOW_TO_REPLY, DIM))))]


def show_sources(readings: Sequence[Reading]) -> list[Block]:
    """Return the passages that readings rest on, each once."""
    passages: dict[str, Passage] = {}
    for reading in readings:
        for span in reading.evidence:
            passages.setdefault(span.passage.id, span.passage)
    blocks = []
    for passage in passages.values():
        head = _line(Run(passage.title, STRONG), f"  [{passage.id}]")
        body = _shorten(printable(passage.text), _LONGEST_PASSAGE)
        blocks.append(Block((head, _line(body, indent=2))))
    return blocks or say("There is no evidence to show.")


def show_hit(rank: int, hit: Hit) -> Block:
    """Return a passage that a search found, with its score."""
    passage = hit.passage
    section = f" › {passage.section}" if passage.section else ""
    head = f"{passage.title}{section}  [{passage.id}]  {hit.score:.2f}"
    body = " ".join(printable(passage.text).split())
    return Block((_line(head, number=rank), _line(body, indent=_BODY)))


def show_story(case: Case) -> list[Block]:
    """Return the question, the paragraph with its citations, and the cited passages with what supports it marked."""
    stopped = f"  (stopped: {case.stopped})" if case.stopped else ""
    head = _line(Run(case.question, STRONG), stopped)
    answer = case.long_answer
    if answer is None or not answer.sentences:
        reason = "Stopped before it was explained." if case.stopped else "No answer found."
        return [Block((head, _line(reason)))]
    lines = []
    for number, passage in enumerate(answer.passages, 1):
        lines.append(_line(f"[{number}] ", Run(passage.title, STRONG)))
        lines.append(_line(*_cited(passage, case), indent=4))
    return [Block((head, _line(answer.cited_text))), Block(tuple(lines))]


def _cited(passage: Passage, case: Case) -> list[Run]:
    """Return a passage with the sentences that support the text marked, cut around the first of them."""
    text, marked, end = passage.text, "", 0
    for start, stop in sorted(_supporting(passage, case)):
        marked += f"{printable(text[end:start])}{_MARK}{printable(text[start:stop])}{_MARK}"
        end = stop
    plain = " ".join(f"{marked}{printable(text[end:])}".split())
    first = plain.find(_MARK)
    if len(plain) > _LONGEST_CITED and first > _LONGEST_CITED // 2:
        plain = "… " + plain[first - 200 :]
    parts = _shorten(plain, _LONGEST_CITED).split(_MARK)
    return [Run(part, MARKED if place % 2 else "") for place, part in enumerate(parts)]


def _supporting(passage: Passage, case: Case) -> set[tuple[int, int]]:
    """Return where a passage gives the answers, and what else is told of it alone."""
    spans = set()
    for reading in case.readings:
        for span in reading.evidence:
            if span.passage.id == passage.id and span.end > span.start:
                spans.add(sentence_at(passage.text, span.start))
    told = case.long_answer.sentences if case.long_answer else ()
    claims = [one.sentence for one in told if [each.id for each in one.passages] == [passage.id]]
    return spans.union(supporting_spans(claims, passage.text))


def _shorten(text: str, longest: int) -> str:
    return textwrap.shorten(" ".join(text.split()), longest, placeholder=" …")
