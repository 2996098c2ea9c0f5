"""A conversation as a record: its turns, what a reply chose, and the file that keeps it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from whichsense import types
from whichsense.errors import BadInput
from whichsense.files import write_atomically
from whichsense.text.clarification import say_dependence
from whichsense.text.rendering import (
    Block,
    say,
    show_case,
    show_clarification,
    show_readings,
    show_story,
)
from whichsense.types import Case, Clarification, LongAnswer, Reading, is_tentative

# A conversation as a value: what was said, how it was understood, what was shown. Nothing in it is
# alive.

_SCHEMA = 3
_OLDER = 2  # without `Intent.named`; it is still read
"""Of a conversation in JSON; another number is refused."""
LONGEST_REPLY = 2_000
"""Characters that a person may say at once."""
MOST_TURNS = 50
"""Turns that are kept; the oldest go first."""

# What a reply means.
CHOOSE = "choose"  # some of the options
ALL = "all"  # every option
SKIP = "skip"  # no preference: go on without a choice
NONE = "none"  # none of the options
QUESTION = "question"  # a new question
ABOUT = "about"  # a question about the options
REFINE = "refine"  # words of the person's own that narrow the question
UNCLEAR = "unclear"  # fits nothing

# What a turn shows.
ANSWER = "answer"  # the only reading, or those that were meant
CLARIFICATION = "clarification"  # a question back to the person
READINGS = "readings"  # every reading of an ambiguous question
POSSIBLE = "possible"  # what is merely possible
EXPLANATION = "explanation"  # the long answer
MORE = "more"  # nothing fits: one more word is needed
NOTHING = "nothing"  # the question has no probable answer here


@dataclass(frozen=True, slots=True)
class Intent:
    """What a reply means."""

    kind: str
    """"choose", "all", "skip", "none", "question", "about", "refine" or "unclear"."""
    options: tuple[str, ...] = ()
    """The ids of the options that are meant: chosen, or asked about."""
    score: float = 1.0
    """How well the reply fits, from 0 to 1. It is no probability."""
    question: str = ""
    """A new question, without the words around it."""
    named: str = ""
    """The words that name what is meant, here or before: they are the context of what follows."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a person said, and what was shown for it."""

    said: str
    intent: Intent
    shown: str
    """"answer", "clarification", "readings", "possible", "explanation", "more" or "nothing"."""
    message: str = ""
    """A sentence before what is shown: the answer to a question about the options, or why something is shown."""
    readings: tuple[Reading, ...] = ()
    """What is answered, best first."""
    clarification: Clarification | None = None
    """The question back to the person. It is pending until the next turn, and its options can be named later, too."""
    long_answer: LongAnswer | None = None

    @property
    def pending(self) -> bool:
        """Whether the person is asked something."""
        return self.shown == CLARIFICATION

    @property
    def is_tentative(self) -> bool:
        """Whether the only answer is not probable: it is given as "Perhaps: …". A reading that a person named is not,
        though it was merely possible before."""
        is_named = self.intent.kind in (CHOOSE, REFINE)
        is_only = self.shown in (ANSWER, READINGS) and is_tentative(self.readings)
        return is_only and not is_named


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation so far. `to_json` and `from_json` carry all of it: store it, and resume it in another process."""

    id: str
    turns: tuple[Turn, ...] = ()
    case: Case | None = None
    """The question that is talked about, with its readings."""
    asked: tuple[str, ...] = ()
    """Clarification questions that were put to the person: none is put twice."""

    @classmethod
    def new(cls) -> Conversation:
        """An empty conversation with an id of its own."""
        return cls(uuid.uuid4().hex)

    @property
    def last(self) -> Turn:
        """The turn that says what to show."""
        if not self.turns:
            raise BadInput("Nothing was said yet. Begin with a question.")
        return self.turns[-1]

    @property
    def clarifications(self) -> tuple[Clarification, ...]:
        """The options that may be chosen: all of the question that is talked about, the latest first."""
        found = []
        for turn in reversed(self.turns):
            if turn.clarification is not None:
                found.append(turn.clarification)
            if turn.intent.kind == QUESTION:
                break
        return tuple(found)

    @property
    def clarification(self) -> Clarification | None:
        """The options that a reply may name: the latest."""
        return next(iter(self.clarifications), None)

    @property
    def dependence(self) -> str:
        """What is said before several readings that the last turn shows; empty where it shows something else."""
        if self.last.shown != READINGS or len(self.last.readings) < 2:
            return ""
        return say_dependence(self.clarification)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The options of the latest clarification that were chosen since it was put."""
        ids: tuple[str, ...] = ()
        for turn in reversed(self.turns):
            if turn.intent.kind in (CHOOSE, ALL):
                ids = ids or turn.intent.options
            if turn.pending:
                break
        return ids

    @property
    def evident(self) -> tuple[Reading, ...]:
        """The readings that were shown last; before any were, all that are probable."""
        for turn in reversed(self.turns):
            if turn.readings and not turn.pending:
                return turn.readings
        return self.case.readings if self.case else ()

    def said(self) -> tuple[str, ...]:
        """What the person said, the latest first."""
        return tuple(turn.said for turn in reversed(self.turns))

    def with_turn(self, turn: Turn) -> Conversation:
        """The conversation with one more turn; the oldest of more than `MOST_TURNS` goes."""
        asked = self.asked
        if turn.pending and turn.clarification is not None:
            asked = (*asked, turn.clarification.question)[-MOST_TURNS:]
        turns = (*self.turns, turn)[-MOST_TURNS:]
        return replace(self, turns=turns, asked=asked)

    def to_json(self) -> dict[str, Any]:
        """The conversation as JSON values; `from_json` gives an equal one back."""
        return {"schema": _SCHEMA, **types.encode(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Conversation:
        """Read what `to_json` wrote. Raises `BadInput` where a field is missing or wrong."""
        schema = value.get("schema") if isinstance(value, Mapping) else None
        if schema not in (_SCHEMA, _OLDER):
            raise BadInput(
                f"This is not a conversation of schema {_SCHEMA} (its schema: {schema!r}). "
                "Use what Conversation.to_json of the same version of whichsense wrote."
            )
        fields = {name: item for name, item in value.items() if name != "schema"}
        turns = fields.get("turns")
        if schema == _OLDER and isinstance(turns, list):
            fields["turns"] = [_with_named(turn) for turn in turns]
        conversation = types.decode(cls, fields)
        if len(conversation.turns) > MOST_TURNS:
            raise BadInput(f"A conversation keeps at most {MOST_TURNS} turns.")
        return conversation


@dataclass(frozen=True, slots=True)
class ServedConversation:
    """A conversation as a service gives it, and the id of the case that it is about."""

    conversation: Conversation
    case_id: str
    """Of the question that is talked about."""
    system: str = ""
    """The system that answers; empty: the first that is served."""
    index: str = ""
    """The index that is asked; empty: the first that is served."""
    owner: str = field(default="", metadata={"json": False})
    """The id of the key that began it."""

    @property
    def id(self) -> str:
        return self.conversation.id

    @property
    def last(self) -> Turn:
        """The turn that says what to show."""
        return self.conversation.last

    def to_json(self) -> dict[str, Any]:
        """Return the conversation as JSON values, with what a client would otherwise have to derive."""
        return {
            "id": self.id,
            "case_id": self.case_id,
            "system": self.system,
            "index": self.index,
            "tentative": self.last.is_tentative,
            "conversation": self.conversation.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], owner: str = "") -> ServedConversation:
        """Read what `to_json` wrote."""
        conversation = Conversation.from_json(value["conversation"])
        system, index = str(value.get("system", "")), str(value.get("index", ""))
        return cls(conversation, str(value["case_id"]), system, index, owner)


def _with_named(turn: Any) -> Any:
    """Return a turn of the older schema as one of today's, in which nothing was named."""
    if not isinstance(turn, Mapping) or not isinstance(turn.get("intent"), Mapping):
        return turn
    return {**turn, "intent": {"named": "", **turn["intent"]}}


def check_reply(text: str) -> str:
    """What a person said, on one line; a text that is too long is refused.

    >>> check_reply("  the\\n2008  film ")
    'the 2008 film'
    """
    if len(text) > LONGEST_REPLY:
        raise BadInput(
            f"A reply may have at most {LONGEST_REPLY:,} characters; this one has {len(text):,}. Say it in fewer words."
        )
    characters = []
    for character in text:
        characters.append(character if character.isprintable() else " ")
    return " ".join("".join(characters).split())


def show_turn(conversation: Conversation) -> list[Block]:
    """Return what the last turn shows."""
    turn, case = conversation.last, conversation.case or Case("")
    if turn.shown == NOTHING:
        return say(turn.message) + show_case(case)
    blocks = say(turn.message)
    if turn.pending and turn.clarification is not None:
        blocks += show_clarification(turn.clarification)
    elif turn.shown == EXPLANATION:
        blocks += show_story(replace(case, long_answer=turn.long_answer))
    blocks += say("Merely possible:" if turn.shown == POSSIBLE else conversation.dependence)
    if turn.shown in (ANSWER, READINGS, POSSIBLE):
        tentative = turn.is_tentative
        blocks += show_readings(turn.readings, case.question, is_tentative=tentative)
    return blocks + say("\n".join(f"({note})" for note in case.notes))


# Conversations in files: one JSON object each.

_LARGEST = 64 * 2**20  # bytes; 50 turns with evidence are a few


def save(conversation: Conversation, path: Path) -> None:
    """Write a conversation; a file that is there is replaced as a whole."""
    body = json.dumps(conversation.to_json(), ensure_ascii=False)
    try:
        write_atomically(path, body.encode("utf-8", "replace"))
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"'{path}' could not be written: {reason}. Choose another place.") from None


def load_conversation(path: Path) -> Conversation:
    """Read what `save` wrote. Raises `BadInput` that says what is wrong with the file."""
    try:
        if path.stat().st_size > _LARGEST:
            raise BadInput(f"'{path}' is too large for a conversation. Check the path.")
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(f"There is no file '{path}'. Check the path.") from None
    except IsADirectoryError:
        raise BadInput(f"'{path}' is a folder; a file is needed.") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"'{path}' holds no conversation: it is not JSON ({error}). Use a file that /save or --conversation wrote."
        ) from None
    try:
        return Conversation.from_json(value)
    except BadInput as error:
        raise BadInput(f"'{path}': {error}") from None
