"""Turns of a conversation for clients of OpenAI's API: history, Markdown with citations, tasks, what clients get."""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote as escape_url

from starlette.responses import JSONResponse

from whichsense.conversation import Conversation, ServedConversation, Turn
from whichsense.serve.schemas import events
from whichsense.serve.state import View
from whichsense.text.words import excerpt
from whichsense.types import Clarification, LongAnswer, Option, Passage, Reading, Span

# Markdown whose numbers in brackets are citations, each with its place in the text.

# What Markdown, or a chat program that links [1], would take for its own.
_MARKUP = re.compile(r"[\\`*\[\]<]|(?<!\w)_|_(?!\w)")
_NUMBERED = re.compile(r"^\s*(\d+)([.)])(?=\s)")


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A number in brackets, `text[start:end]`, and the passage that it stands for."""

    start: int
    end: int
    number: int
    title: str
    url: str
    text: str


@dataclass(frozen=True, slots=True)
class Meaning:
    """A reading in short."""

    answer: str
    label: str
    question: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Written:
    """An answer as Markdown."""

    text: str
    citations: tuple[CitedPassage, ...] = ()
    options: tuple[str, ...] = ()
    """What may be replied to the question back: the labels of its options."""
    readings: tuple[Meaning, ...] = ()
    """All readings that are asked about, or answered."""

    @property
    def sources(self) -> tuple[CitedPassage, ...]:
        """Each cited passage once, by its number."""
        first: dict[int, CitedPassage] = {}
        for citation in self.citations:
            first.setdefault(citation.number, citation)
        return tuple(first[number] for number in sorted(first))


@dataclass
class Page:
    """A text that grows."""

    base: str = ""
    """The address of the service, for passages without one of their own."""
    index: str = ""
    """Where there are several: the name of the one that is asked."""
    shows_titles: bool = False
    """Whether the client shows a title in the place of each number."""
    text: str = ""
    citations: list[CitedPassage] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, markdown: str) -> None:
        self.text += markdown

    def add_block(self, markdown: str = "") -> None:
        """Begin a new paragraph."""
        self.text = f"{self.text.rstrip()}\n\n{markdown}".lstrip()

    def cite(self, passage: Passage) -> None:
        """Add the passage's number in brackets; each passage keeps its number."""
        number = self._numbers.setdefault(passage.id, len(self._numbers) + 1)
        start = len(self.text)
        self.text += f"[{number}]"
        self.citations.append(
            CitedPassage(
                start,
                len(self.text),
                number,
                passage.title,
                address_of(passage, self.base, self.index),
                passage.text,
            )
        )

    def is_cited(self, passage: Passage) -> bool:
        return passage.id in self._numbers


def address_of(passage: Passage, base: str, index: str = "") -> str:
    """Where a passage can be read: at its source if that is a page, else at the service.

    >>> address_of(Passage("a b", "T", "…", source="notes.md"), "http://localhost:8000")
    'http://localhost:8000/v1/passages/a%20b'
    """
    if passage.source.startswith(("http://", "https://")):
        return passage.source
    query = f"?index={escape_url(index)}" if index else ""
    return f"{base}/v1/passages/{escape_url(passage.id, safe='')}{query}"


def plain(text: str) -> str:
    """A text on one line, without what Markdown would take for its own.

    >>> plain("a *star*, snake_case,\\n1. [sic]")
    'a \\\\*star\\\\*, snake_case, 1. \\\\[sic\\\\]'
    """
    return _MARKUP.sub(lambda mark: f"\\{mark[0]}", " ".join(text.split()))


def plain_line(text: str) -> str:
    """The same for a line of its own, whose number would begin a list.

    >>> plain_line("1. FC Köln")
    '1\\\\. FC Köln'
    """
    return _NUMBERED.sub(r"\1\\\2", plain(text))


# A turn of a conversation as Markdown that reads well in any chat program.

HOW_TO_REPLY = (
    "Reply with a number, a few words, several of them, “all” or “none” – or ask something else."
)
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
    readings = tuple(
        Meaning(one.answer, one.label, one.question, round(one.confidence, 3))
        for one in turn.readings
    )
    return Written(page.text, tuple(page.citations), options, readings)


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
        for span in reading.evidence[:1]:  # the best; the rest is often beside the point
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


# What was said so far, from the messages that a client repeats with every request.
#
# A conversation is kept under a digest of its owner and of every message in it. The next request has
# the same messages before its newest one, so any worker finds the conversation again; a digest tells
# nothing of what was said.

USER = "user"
ASSISTANT = "assistant"
REPLAYED = 3
"""Messages of the person that are answered again where the conversation is not known any more."""
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the person or of the service."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """What the person says now, and what was said before it."""

    text: str
    history: tuple[Message, ...] = ()
    tokens: int = 0
    """Of the whole request, with the system's messages."""


@dataclass(frozen=True, slots=True)
class Found:
    """The conversation so far: what is kept of it, and what has to be answered again to get to now."""

    digest: str
    """Of all messages before the newest; empty where they are not all known."""
    kept: ServedConversation | None = None
    replayed: tuple[str, ...] = ()


def count_tokens(text: str) -> int:
    """Words and marks: what `usage` counts.

    >>> count_tokens("Who played the Joker?")
    5
    """
    return len(_WORD.findall(text))


def first_digest(view: View) -> str:
    """The digest of a conversation in which nothing was said."""
    return _digest("", view.owner or "", *view.indexes)


def next_digest(digest: str, message: Message) -> str:
    """The digest with one more message. White space, which clients change, does not count.

    >>> one = next_digest("", Message("user", "Who won? "))
    >>> one == next_digest("", Message("user", "Who won?"))
    True
    """
    return _digest(digest, message.role, " ".join(message.text.split()))


def _digest(*parts: str) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def find_conversation(
    find: Callable[[str, View], ServedConversation | None], view: View, history: Sequence[Message]
) -> Found:
    """The longest beginning of the history that is kept, and the messages of the person after it. In a thread."""
    digests = [first_digest(view)]
    for message in history:
        digests.append(next_digest(digests[-1], message))
    replayed: list[str] = []
    for place in range(len(history), 0, -1):
        message = history[place - 1]
        if message.role == ASSISTANT:
            kept = find(digests[place], view)
            if kept is not None:
                return Found(digests[-1], kept, tuple(reversed(replayed)))
        elif len(replayed) < REPLAYED:
            replayed.append(message.text)
        else:
            break
    return Found(digests[-1], None, tuple(reversed(replayed)))


# Prompts that chat programs send on their own: titles, tags, follow-ups. They are answered at once,
# without a search.
#
# Open WebUI asks them of the model that is chosen, as chats that begin with "### Task:". The form of
# the answer is the first JSON object in the prompt; what was said stands between <chat_history> and
# </chat_history>. LibreChat asks for a title in one sentence, with what was said behind it.

_BEGIN = "### Task:"
_FORM = re.compile(r"\{\s*\"(\w+)\"\s*:\s*([\[\"])")
_HISTORY = re.compile(r"<chat_history>\n?(.*?)\n?</chat_history>", re.DOTALL)
_ROLE = re.compile(r"^(USER|ASSISTANT|SYSTEM|TOOL|User|AI): ", re.MULTILINE)
# LibreChat's own words.
_BARE_TITLE = re.compile(
    r"Provide a concise, 5-word-or-less title for the conversation\b.*?^Conversation:\n(.*)",
    re.DOTALL | re.MULTILINE,
)
_QUERY = re.compile(r"<user_query>(.*?)</user_query>", re.DOTALL)
_CONTEXT_END = "</context>"
_LONGEST_TITLE = 80


def answer_task(text: str) -> str | None:
    """The answer to such a prompt; None for what a person says.

    >>> history = "<chat_history>\\nUSER: Who won?\\n</chat_history>"
    >>> answer_task('### Task:\\nWrite a title. JSON format: { "title": "…" }\\n' + history)
    '{"title": "Who won?"}'
    >>> answer_task('### Task:\\nTags. JSON format: { "tags": ["tag1"] }')
    '{"tags": []}'
    """
    bare = _BARE_TITLE.match(text.lstrip())
    if bare is not None:
        return _title(list(_messages(bare[1])))
    if not text.lstrip().startswith(_BEGIN) or _CONTEXT_END in text:
        return None
    block = _HISTORY.search(text)
    history = list(_messages(block[1])) if block else []
    title = _title(history)
    form = _FORM.search(_HISTORY.sub("", text))
    if form is None:
        return title if "title" in text.partition("\n###")[0].lower() else ""
    key, is_list = form[1], form[2] == "["
    if key == "title":
        return json.dumps({key: title}, ensure_ascii=False)
    if key == "follow_ups":
        return json.dumps({key: _options(history)}, ensure_ascii=False)
    return json.dumps({key: [] if is_list else ""})


def question_in(text: str) -> str:
    """What a person asks. Open WebUI writes documents that a person has attached before it.

    >>> question_in("### Task:\\nUse the context.\\n<context>\\n…\\n</context>\\n\\nWho won?")
    'Who won?'
    """
    if not text.lstrip().startswith(_BEGIN):
        return text
    query = _QUERY.search(text)
    if query is not None:
        return query[1].strip()
    return text.rpartition(_CONTEXT_END)[2].strip()


def _messages(history: str) -> Iterator[Message]:
    # The text before the first role, then a role and its text in turns.
    parts = _ROLE.split(history)
    for role, said in zip(parts[1::2], parts[2::2], strict=True):
        yield Message(role.lower(), said.strip())


def _title(history: list[Message]) -> str:
    """The first thing that the person said."""
    for message in history:
        if message.role == USER:
            line = " ".join(message.text.split())
            if len(line) <= _LONGEST_TITLE:
                return line
            return line[:_LONGEST_TITLE].rsplit(" ", 1)[0] + " …"
    return ""


def _options(history: list[Message]) -> list[str]:
    """The options of the question back, if that was the last thing said."""
    if not history or history[-1].role != ASSISTANT:
        return []
    return options_in(history[-1].text)


# What Open WebUI shows beside the text: stages as they end, sources with their text, options to
# click.
#
# A chunk of its stream with the key `event` goes to its page as it is. Other clients never get one:
# Open WebUI is known by the headers that it sends with ENABLE_FORWARD_USER_INFO_HEADERS=true, or that
# are set for its connection.

_HEADER = "x-openwebui-"


def is_open_webui(headers: Mapping[str, str]) -> bool:
    """Whether a request is Open WebUI's.

    >>> is_open_webui({"x-openwebui-chat-id": "1"}), is_open_webui({"user-agent": "curl"})
    (True, False)
    """
    return any(name.lower().startswith(_HEADER) for name in headers)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def status_event(description: str, done: bool = False) -> dict[str, Any]:
    return {"type": "status", "data": {"description": description, "done": done}}


def events_of(written: Written) -> Iterator[dict[str, Any]]:
    """Its events at the end: the sources by their numbers, and the options of a question back."""
    for source in written.sources:
        yield {
            "type": "source",
            "data": {
                "source": {"name": source.title, "url": source.url},
                "document": [source.text],
                "metadata": [{"source": source.url, "name": source.title}],
            },
        }
    if written.options:
        yield {"type": "chat:message:follow_ups", "data": {"follow_ups": list(written.options)}}
    yield status_event(_summary(written), done=True)


def _summary(written: Written) -> str:
    """The status that stays above the text."""
    if written.options:
        return f"{_count(len(written.options), 'reading')}: which is meant?"
    if written.sources:
        return f"From {_count(len(written.sources), 'passage')}"
    return "Done"


# What clients get, as the OpenAPI description has it: OpenAI describes it.

_REFERENCE = "https://platform.openai.com/docs/api-reference"


def described(name: str, *statuses: int, streams: bool = False) -> dict[str, Any]:
    """The responses of a path for the OpenAPI description: an object of OpenAI's API, and the statuses of errors."""
    content = {"application/json": {"schema": {"type": "object"}}}
    fine = {
        "description": f"See {_REFERENCE}/{name}",
        "content": content | _STREAM if streams else content,
    }
    error = {"application/json": {"schema": {"type": "object", "required": ["error"]}}}
    told = {"description": "An error; its message says what to do.", "content": error}
    usual = (400, 401, 403, 408, 413, 414, 415, 421, 429, 503)
    errors = dict.fromkeys((*usual, *statuses), told)
    return {"response_class": JSONResponse, "responses": {200: fine, **errors}}


_STREAM = events(
    'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"…"}}]}\n\n'
    "data: [DONE]\n\n",
    event={"type": "string"},
)
