"""The kinds of annotation. One description for each: its form, what an item needs, what is checked, what agrees."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from whichsense.studio import checks
from whichsense.studio.checks import Check, Finding, Value, error

FieldType = Literal["text", "long text", "choice", "flag", "texts", "numbers", "number", "list"]
Measure = Literal["answers", "choice", "options", "text", "marks"]
"""How two annotations agree: F1 over answers, one label, a set of options, ROUGE-L, several labels."""


JUDGED = ("rewrite", "answer", "source", "title", "sentence", "start", "end")
"""What is shown of a reading that is judged."""
UNSHOWN = ("suggestion", "uncertainty", "case", "form", "queries", "release")
"""What an item has for the records alone."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form."""

    name: str
    type: FieldType
    label: str
    help: str = ""
    choices: Mapping[str, str] | None = None
    """What may be chosen → how it is called."""
    when: Mapping[str, Sequence[str]] | None = None
    """It is shown where another field has one of these values."""
    required: bool = False
    fields: tuple[Field, ...] = ()
    """Of each entry of a list."""
    each: str = ""
    """The list of the item that has one entry here for each of its own: "readings"."""
    of: str = ""
    """The list of the item that a number, or numbers, count in from 0."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of annotation."""

    name: str
    title: str
    fields: tuple[Field, ...]
    needs: tuple[str, ...]
    """What an item has beside its question."""
    measure: Measure
    label: str
    """The field that measures of one label compare."""
    guidelines: str
    rules: tuple[Check, ...] = ()
    searches: bool = False
    """Whether a search stands beside the form."""
    hidden: tuple[str, ...] = ()
    """What of an item nobody sees who annotates it."""
    swaps: bool = False
    """Whether the item's two answers are shown in an order of the annotator's own."""

    def check(self, item: Value, value: Value) -> list[Finding]:
        """Everything that is wrong with a value, in the order of the form."""
        findings = list(_check_shape(self.fields, value, ""))
        if findings:
            return findings
        value = checks.present(value)
        findings += _check_required(self.fields, value, value, "")
        for rule in self.rules:
            findings += rule(item, value)
        return findings

    def errors(self, item: Value, value: Value) -> list[Finding]:
        """What keeps a value from being submitted."""
        return [one for one in self.check(item, value) if one.level == "error"]

    def check_shape(self, value: Value) -> list[Finding]:
        """Fields that there are not, and values of a wrong type: nothing that a form would send."""
        return list(_check_shape(self.fields, value, ""))

    def shown(self, item: Value, annotator: str) -> dict[str, Any]:
        """The item as an annotator sees it."""
        hidden = {*UNSHOWN, *self.hidden}
        fields = {name: value for name, value in item.items() if name not in hidden}
        if "readings" in hidden:
            fields.pop("readings", None)
        elif self.name == "readings":
            fields["readings"] = [{name: one[name] for name in JUDGED} for one in item["readings"]]
        if parsed := checks.take_apart(item.get("draft", "")):
            fields["parsed"] = parsed
        if self.swaps and swapped(item, annotator):
            fields["answers"] = list(reversed(item["answers"]))
        return fields

    def unswapped(self, item: Value, annotator: str, value: Value) -> Value:
        """What an annotator wrote, about the answers in the item's own order."""
        if not self.swaps or not swapped(item, annotator):
            return value
        other = {"first": "second", "second": "first"}
        turned = dict(value)
        for field in self.fields:
            if field.name in value and field.type == "choice":
                turned[field.name] = other.get(value[field.name], value[field.name])
            elif field.name in value and field.each == "answers":
                turned[field.name] = list(reversed(value[field.name]))
        return turned


def swapped(item: Value, annotator: str) -> bool:
    """Whether an annotator sees the second answer first."""
    digest = hashlib.sha256(f"{item['id']}\0{annotator}".encode(errors="surrogatepass"))
    return bool(digest.digest()[0] & 1)


_TYPES: dict[str, type] = {
    "text": str,
    "long text": str,
    "choice": str,
    "flag": bool,
    "number": int,
    "texts": str,
    "numbers": int,
}


def _check_shape(fields: Sequence[Field], value: Value, prefix: str) -> Iterator[Finding]:
    known = {field.name: field for field in fields}
    for name, own in value.items():
        where = f"{prefix}{name}"
        if name not in known:
            yield error(where, "unknown", "The form has no such field.")
        elif own is not None:
            yield from _check_type(known[name], own, where)


def _check_type(field: Field, value: Any, where: str) -> Iterator[Finding]:
    if not _has_type(field, value):
        yield error(where, "type", f"This is not a {field.type}.")
    elif field.type == "list":
        for number, one in enumerate(value):
            yield from _check_shape(field.fields, one, f"{where}.{number}.")
    elif field.choices and value not in field.choices:
        yield error(where, "choice", f"Choose one of: {', '.join(field.choices)}.")


def _has_type(field: Field, value: Any) -> bool:
    if field.type == "list":
        return isinstance(value, list) and all(isinstance(one, dict) for one in value)
    if field.type in ("texts", "numbers"):
        if not isinstance(value, list):
            return False
        return all(type(one) is _TYPES[field.type] for one in value)
    return type(value) is _TYPES[field.type]


def _check_required(
    fields: Sequence[Field], value: Value, whole: Value, prefix: str
) -> Iterator[Finding]:
    for field in fields:
        own = value.get(field.name)
        where = f"{prefix}{field.name}"
        if not _is_asked(field, whole):
            continue
        if field.required and own in (None, "", []):
            yield error(where, "missing", "This is still missing.")
        if field.type == "list":
            for number, one in enumerate(own or ()):
                yield from _check_required(field.fields, one, whole, f"{where}.{number}.")


def _is_asked(field: Field, whole: Value) -> bool:
    return all(whole.get(name) in wanted for name, wanted in (field.when or {}).items())


# Fields that several kinds have.

_REMARK = Field("remark", "text", "Remark", "Anything wrong with this question? Optional.")
_OUTCOME = {"single": "One answer", "several": "Several answers", "nothing": "Nothing found"}


def _answer_fields(when: Mapping[str, Sequence[str]] | None = None) -> tuple[Field, ...]:
    aliases = Field("answers", "texts", "Answer", "The answer first, then other names for it.")
    shown = dict(when or {})
    rewrite = Field(
        "question", "text", "Question", "The question with as few words changed as possible."
    )
    return (
        Field(
            "outcome",
            "choice",
            "What did you find?",
            choices=_OUTCOME,
            required=not when,
            when=when,
        ),
        Field("answers", "texts", "Answer", aliases.help, when={**shown, "outcome": ["single"]}),
        Field(
            "pairs",
            "list",
            "Questions and answers",
            "One pair for each answer.",
            when={**shown, "outcome": ["several"]},
            fields=(rewrite, aliases),
        ),
        Field(
            "why_nothing",
            "choice",
            "Why?",
            choices={
                "not found": "No page has the answer",
                "ill-formed": "The question cannot be understood",
                "subjective": "It is a matter of opinion",
                "too ambiguous": "There are too many answers to list",
            },
            when={**shown, "outcome": ["nothing"]},
            required=True,
        ),
    )


_SIDES = {"first": "A", "second": "B", "tie": "Equal"}
_READING_FIELDS = ("readings",)

MARKS = {
    "answer": "Right in some plausible sense, and the evidence says so.",
    "true": "Whoever asks this would rightly be given this answer.",
    "apart": "It calls for no other answer of the list.",
    "fluent": "A person could have written it.",
}
_ALL = (
    Kind(
        "generate",
        "Find every answer",
        (*_answer_fields(), _REMARK),
        needs=(),
        measure="answers",
        label="outcome",
        rules=(checks.check_answers,),
        searches=True,
        hidden=("readings", "annotations", "clarification"),
        guidelines="""\
# Find every answer

Search and read pages until you know every plausible answer to the question.

- **One answer**: copy it from a page. Add other names for it.
- **Several answers**: write a pair for each. Change the question by as few words as possible, so that this answer is
  right and the others are wrong.
- **Nothing found**: say why.

Where the answer depends on the day of asking, ask for the three latest events at most.
""",
    ),
    Kind(
        "validate",
        "Check what others found",
        (
            Field(
                "verdict",
                "choice",
                "Which annotations are right?",
                choices={
                    "same": "All of them",
                    "better": "One of them",
                    "new": "None as it is: write a new one",
                },
                required=True,
            ),
            Field("better", "number", "Which one?", when={"verdict": ["better"]}, of="annotations"),
            *_answer_fields({"verdict": ["new"]}),
            _REMARK,
        ),
        needs=("annotations",),
        measure="answers",
        label="verdict",
        rules=(checks.check_validation,),
        searches=True,
        hidden=("readings", "clarification"),
        guidelines="""\
# Check what others found

Others have answered the question. Read the pages that they read, and search for more.

- **All of them** are right: they say the same, or all that they say is true and complete.
- **One of them** is right: the others miss an answer or have a wrong one.
- **None as it is**: put together what is right of each, and add what is missing.
""",
    ),
    Kind(
        "clarification",
        "Ask back",
        (
            Field(
                "action",
                "choice",
                "What is to be done?",
                choices={
                    "keep": "No problem",
                    "revise": "Revised",
                    "not ambiguous": "Not ambiguous",
                },
                required=True,
            ),
            Field(
                "lead",
                "text",
                "Category",
                "“Which version”, “As of which year”.",
                when={"action": ["keep", "revise"]},
                required=True,
            ),
            Field(
                "options",
                "list",
                "Options",
                "One for each reading, in a few words, in the order of the readings.",
                when={"action": ["keep", "revise"]},
                fields=(
                    Field("text", "text", "Option"),
                    Field("reading", "number", "Reading", of="readings"),
                ),
            ),
            Field(
                "excluded",
                "numbers",
                "Excluded readings",
                "Those that repeat another with the same answer.",
                of="readings",
            ),
            _REMARK,
        ),
        needs=_READING_FIELDS,
        measure="options",
        label="lead",
        rules=(checks.check_clarification,),
        guidelines="""\
# Ask back

The question has several readings. The draft asks which one is meant: “Which version: the 2002 film, the book, or the
musical?”

1. Each option stands for one reading, in as few words as possible.
2. The category names what the options are. If nothing names them all: “Which one”.
3. The category is not repeated in the options: “Which year: 2010, or 2017?”
4. Exclude a reading that means the same as another and has the same answer.
5. If there is only one reading left, the question is not ambiguous.
""",
    ),
    Kind(
        "preference",
        "Which would you rather be asked?",
        (
            Field(
                "choice",
                "choice",
                "Which do you prefer?",
                choices={
                    "clarification": "To be asked back, then see one answer",
                    "rewrites": "To see all answers",
                    "equal": "Equal",
                },
                required=True,
            ),
            Field("reason", "text", "Why?", "At least one sentence."),
        ),
        needs=("readings", "clarification"),
        measure="choice",
        label="choice",
        rules=(checks.check_reason,),
        guidelines="""\
# Which would you rather be asked?

You have asked a question that has several answers. You can be asked which one you mean, or be shown all of them. Say
which you would rather have, and why in at least one sentence. Choose “equal” only if it is really hard to say.
""",
    ),
    Kind(
        "long-answer",
        "Tell the whole story",
        (
            Field("text", "long text", "Long answer", required=True),
            Field(
                "knowledge",
                "list",
                "Added knowledge",
                "What you took from other pages, with the page.",
                fields=(Field("content", "long text", "Text"), Field("source", "text", "Page")),
            ),
            Field(
                "covered",
                "numbers",
                "Said in other words",
                "Readings whose answer the text gives in other words.",
                of="readings",
            ),
            _REMARK,
        ),
        needs=_READING_FIELDS,
        measure="text",
        label="text",
        rules=(checks.check_long_answer,),
        searches=True,
        guidelines="""\
# Tell the whole story

Write a text that answers the question for somebody who does not know that it is ambiguous.

- **Complete**: every short answer is in it.
- **Comprehensive**: it says why there are several answers, and how they belong together.
- **Fluent**: it reads as one text, not as a list.
- **Attributable**: what you add to the passages given is quoted below with its page.
""",
    ),
    Kind(
        "compare",
        "Compare two long answers",
        (
            Field("overall", "choice", "Which is better overall?", choices=_SIDES, required=True),
            Field(
                "comprehensive",
                "choice",
                "Which is more comprehensive?",
                choices=_SIDES,
                required=True,
            ),
            Field("fluent", "choice", "Which is more fluent?", choices=_SIDES, required=True),
            Field(
                "ambiguity",
                "choice",
                "Which tells the ambiguity better?",
                choices=_SIDES,
                required=True,
            ),
            Field(
                "found",
                "list",
                "Answers found in it",
                "For each reading the words that answer it; empty if there are none.",
                each="answers",
                fields=(Field("answers", "texts", "Answers", each="readings"),),
            ),
            Field("reason", "text", "Why?"),
        ),
        needs=("readings", "answers"),
        measure="choice",
        label="overall",
        rules=(checks.check_comparison,),
        swaps=True,
        guidelines="""\
# Compare two long answers

First find, in each of the two texts, the answer to every reading: copy its words, or leave the field empty. Then say
which text is better, overall and in three respects.
""",
    ),
    Kind(
        "readings",
        "Judge readings",
        (
            Field(
                "marks",
                "list",
                "Marks",
                each="readings",
                fields=tuple(
                    Field(name, "flag", name.capitalize(), asks) for name, asks in MARKS.items()
                ),
            ),
            _REMARK,
        ),
        needs=_READING_FIELDS,
        measure="marks",
        label="marks",
        rules=(checks.check_marks,),
        hidden=("gold",),
        guidelines="""\
# Judge readings

Four marks for each reading, each yes or no.

| mark | with a rewrite: yes if | without one: yes if |
|---|---|---|
| answer | the answer is right for the question under some plausible reading, and the evidence supports it | the same |
| true | whoever asks exactly the rewrite would rightly be given exactly this answer | nothing shown misleads |
| apart | it does not equally call for another listed answer | a reader can tell when this answer applies |
| fluent | a person could have written it | the label reads as a person would write it |
""",
    ),
)
KINDS = {kind.name: kind for kind in _ALL}
