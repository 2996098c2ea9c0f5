"""A turn of a conversation as Markdown that reads well in any chat program."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from whichsense.conversation import Conversation, Turn
from whichsense.serve.openai.writing import Page, Written, plain, plain_line
from whichsense.text.sentences import excerpt
from whichsense.types import Clarification, LongAnswer, Option, Passage, Reading, Span

HOW_TO_REPLY = "Reply with a number, a few words, several of them, “all” or “none” – or ask something else."
_NEAREST = 3  # passages that are shown where there is no answer
_LONGEST_QUOTE = 300
_LONGEST_ABOUT = 110  # characters beneath an option
_OPTION = re.compile(r"^\d+\. \*\*(.+?)\*\*", re.MULTILINE)
_ESCAPED = re.compile(r"\\(.)")


def write_turn(conversation: Conversation, page: Page) -> Written:
    """What the last turn shows, on an empty page."""
    turn = conversation.last
    options: tuple[str, ...] = ()
    if turn.shown == "clarification" and turn.clarification is not None:
        _add_clarification(page, turn, turn.clarification)
        options = tuple(option.label for option in turn.clarification.options)
    else:
        _add_message(page, turn)
        _add_answer(page, turn, conversation)
    if conversation.case is not None:
        for note in conversation.case.notes:
            page.add_block(f"*{plain(note)}*")
    return Written(page.text, tuple(page.citations), options)


def _add_answer(page: Page, turn: Turn, conversation: Conversation) -> None:
    if turn.shown == "nothing":
        _add_nothing(page, conversation)
    elif turn.shown == "explanation" and turn.long_answer is not None:
        _add_story(page, turn.long_answer)
    elif turn.shown in ("answer", "readings", "possible"):
        _add_readings(page, turn, conversation)


def options_in(text: str) -> list[str]:
    """The labels of the options in a question back that was written here; none in other texts.

    >>> options_in("**Which film?**\\n\\n1. **the 1989 film**\\n2. **the 2008 film**\\n\\n" + HOW_TO_REPLY)
    ['the 1989 film', 'the 2008 film']
    """
    if not text.rstrip().endswith(HOW_TO_REPLY):
        return []
    return [_ESCAPED.sub(r"\1", label) for label in _OPTION.findall(text)]


def _add_message(page: Page, turn: Turn) -> None:
    for line in turn.message.splitlines():
        page.add_block(plain_line(line))


def _add_clarification(page: Page, turn: Turn, clarification: Clarification) -> None:
    """The question with its numbered options. Those that were asked about are shown with their evidence."""
    is_about = turn.intent.kind == "about"
    if not is_about:
        _add_message(page, turn)
    page.add_block(f"**{plain(clarification.lead)}?**")
    page.add_block()
    for number, option in enumerate(clarification.options, 1):
        page.add(f"{number}. **{plain(option.label)}**")
        if is_about and (option.id in turn.intent.options or not turn.intent.options):
            _add_evidence(page, option)
        elif option.description and not turn.message:
            about = _shorten(_without_title(option))
            page.add(f" – {plain(about)}")
        page.add("\n")
    page.add_block(HOW_TO_REPLY)


def _add_evidence(page: Page, option: Option) -> None:
    """What an option is: the sentence of its evidence, or its description where it has none."""
    for reading in option.readings[:1]:
        for span in reading.evidence[:1]:
            page.add(f" – {_quote(span)} ")
            page.cite(span.passage)
            return
    if option.description:
        page.add(f" – {plain(option.description)}")


def _shorten(text: str) -> str:
    return textwrap.shorten(text, _LONGEST_ABOUT, placeholder=" …")


def _without_title(option: Option) -> str:
    """An option's description, without the title before it where the sentence or the label names that itself.

    >>> _without_title(Option("1", "in Asia", "Tbilisi (city): Tbilisi is the capital."))
    'Tbilisi is the capital.'
    >>> _without_title(Option("1", "the series", "Batman: He plays the Joker."))
    'Batman: He plays the Joker.'
    """
    title, _, sentence = option.description.partition(": ")
    name = title.partition(" (")[0]  # "Dune (novel)" is Dune
    is_named = name in sentence or name in option.label
    return sentence if sentence and is_named else option.description


def _add_readings(page: Page, turn: Turn, conversation: Conversation) -> None:
    readings = turn.readings
    case = conversation.case
    asked = case.question if case is not None else ""
    if turn.shown == "possible":
        page.add_block("Merely possible:")
    elif conversation.dependence:
        page.add_block(plain(conversation.dependence))
    page.add_block()
    if turn.is_tentative:
        page.add("Perhaps: ")
    _add_answers(page, readings, asked)


def _add_answers(page: Page, readings: Sequence[Reading], asked: str) -> None:
    """The answers, numbered where there are several, and a quotation of each passage behind them."""
    spans: list[Span] = []
    for number, reading in enumerate(readings, 1):
        if len(readings) > 1:
            page.add(f"{number}. ")
        page.add(f"**{plain(reading.answer)}**")
        for span in reading.evidence[
            :1
        ]:  # the best; the rest is often beside the point
            if not page.is_cited(span.passage):
                spans.append(span)
            page.add(" ")
            page.cite(span.passage)
        page.add(f"{_meant(reading, asked)} · {reading.confidence:.0%}\n")
    _add_quotations(page, spans)


def _meant(reading: Reading, asked: str) -> str:
    """What an answer answers, where that is more than what was asked."""
    told = reading.told_apart(asked)
    return f" – *{plain(told)}*" if told else ""


def _add_quotations(page: Page, spans: Sequence[Span]) -> None:
    """A line for each passage: its number, its title, the sentence with the answer."""
    page.add_block()
    for span in spans:
        page.add("- ")
        _add_source(page, span.passage, _quote(span))
    page.text = page.text.rstrip()


def _quote(span: Span) -> str:
    """The sentence in which a span stands."""
    text = span.passage.text
    sentence = "".join(excerpt(text, span.start, span.end, _LONGEST_QUOTE))
    return f"“{plain(sentence)}”"


def _add_story(page: Page, story: LongAnswer) -> None:
    """The long answer, numbers behind every sentence, and the titles that they stand for."""
    page.add_block()
    for place, citation in enumerate(story.sentences):
        sentence = plain(citation.sentence)
        end = sentence[-1:] if sentence.endswith((".", "!", "?")) else ""
        page.add(f"{' ' if place else ''}{sentence.removesuffix(end)}")
        if citation.passages:
            page.add(" ")
        for passage in dict.fromkeys(citation.passages):
            page.cite(passage)
        page.add(end)
    page.add_block()
    if not page.shows_titles:
        for passage in story.passages:
            page.add("- ")
            _add_source(page, passage)
    page.text = page.text.rstrip()


def _add_source(page: Page, passage: Passage, said: str = "") -> None:
    """A passage's number, its title where the client does not show it by itself, and what it says."""
    page.cite(passage)
    if not page.shows_titles:
        page.add(f" {plain(passage.title)}{':' if said else ''}")
    page.add(f" {said}\n" if said else "\n")


def _add_nothing(page: Page, conversation: Conversation) -> None:
    """Why there is no answer, and the passages that came nearest."""
    case = conversation.case
    if case is None:
        return
    if case.stopped:
        page.add_block("The time was up before an answer was found. Ask again.")
    elif case.hits:
        page.add_block("The documents that are searched here do not answer that.")
    else:
        page.add_block("Nothing like that is in the documents that are searched here.")
    if case.hits:
        page.add(" Nearest:")
        page.add_block()
        for hit in case.hits[:_NEAREST]:
            page.add("- ")
            _add_source(page, hit.passage, plain(_shorten(hit.passage.text)))
        page.text = page.text.rstrip()
