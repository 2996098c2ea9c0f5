"""Formats of releases: an item with its annotations → a row of AmbigNQ, CAmbigNQ or ASQA, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whichsense.studio.checks import composed, take_apart

Fields = Mapping[str, Any]
_NO_CONTEXT = "No context provided"  # ASQA's words for a missing context
_SEARCHED = ("used_queries", "viewed_doc_titles")


@dataclass(frozen=True, slots=True)
class Outcome:
    """An item with what counts of its annotations, and what people searched and read for it."""

    body: Fields
    values: Sequence[Fields]
    """Accepted annotations, in the form's fields."""
    searches: Sequence[Fields] = ()
    """In AmbigNQ's form: query, and results with title and snippet."""
    pages: Sequence[str] = ()
    item: int = 0
    """The item's number in the project; 0: it is in none yet."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a release writes an item, and how it is read back."""

    name: str
    file: str
    kinds: tuple[str, ...]
    """The kinds of projects that can be written; a row is read as the first."""
    write: Callable[[Outcome], dict[str, Any] | None]
    """None: the release has no place for it, such as a question to which nothing was found."""
    read: Callable[[Fields], Outcome]


# AmbigNQ: light, and full with searches and pages.


def _to_ambignq(outcome: Outcome) -> dict[str, Any] | None:
    annotations = [one for value in outcome.values if (one := as_annotation(value))]
    if not annotations:
        return None
    row = {"id": outcome.body["id"], "question": outcome.body["question"]}
    return {**row, "annotations": annotations, **outcome.body.get("release", {})}


def as_annotation(value: Fields) -> dict[str, Any] | None:
    """An annotation in AmbigNQ's form.

    >>> as_annotation({"outcome": "single", "answers": ["Ann", "A."]})
    {'type': 'singleAnswer', 'answer': ['Ann', 'A.']}
    """
    if value.get("outcome") == "single":
        return {"type": "singleAnswer", "answer": list(value["answers"])}
    if value.get("outcome") == "several":
        pairs = [
            {"question": one["question"], "answer": list(one["answers"])} for one in value["pairs"]
        ]
        return {"type": "multipleQAs", "qaPairs": pairs}
    return None


def from_annotation(annotation: Fields) -> dict[str, Any]:
    """The form's fields of an annotation in AmbigNQ's form."""
    if annotation["type"] == "singleAnswer":
        return {"outcome": "single", "answers": _texts(annotation["answer"])}
    pairs = [
        {"question": one["question"], "answers": _texts(one["answer"])}
        for one in annotation["qaPairs"]
    ]
    return {"outcome": "several", "pairs": pairs}


def _from_ambignq(row: Fields) -> Outcome:
    values = [from_annotation(one) for one in row["annotations"]]
    return Outcome(_body(row, "id", "question", ("annotations",)), values)


def _to_full(outcome: Outcome) -> dict[str, Any] | None:
    row = _to_ambignq(outcome)
    if row is None:
        return None
    return {"nq_answer": [], "nq_doc_title": "", **row, **_searched(outcome)}


def _searched(outcome: Outcome) -> dict[str, Any]:
    return {
        "viewed_doc_titles": list(dict.fromkeys([*outcome.body.get("pages", ()), *outcome.pages])),
        "used_queries": [*outcome.body.get("queries", ()), *outcome.searches],
    }


# CAmbigNQ: the question that asks back, and the readings that its options stand for.


def _to_cambignq(outcome: Outcome) -> dict[str, Any] | None:
    body = outcome.body
    value: Fields = next(iter(outcome.values), {"action": ""})
    if value["action"] not in ("keep", "revise"):
        return None
    tied = [body["readings"][option["reading"]] for option in value["options"]]
    rewrites = [one["question"] for one in tied]
    asked = body.get("draft") if value["action"] == "keep" else ""
    row = {
        "id": body["id"],
        "question": body["question"],
        "clarification_question": asked or composed(value),
        "clarification_answers": [list(one["answers"]) for one in tied],
    }
    if all(rewrites):
        row["dqs"] = rewrites
    if body.get("pages") or body.get("queries"):
        row |= _searched(outcome)
    return {**row, **body.get("release", {})}


def _from_cambignq(row: Fields) -> Outcome:
    answers = [_texts(one) for one in row["clarification_answers"]]
    rewrites = list(row.get("dqs") or [])
    body = _body(row, "id", "question", ("clarification_question", "clarification_answers", "dqs"))
    if len(rewrites) != len(answers):  # which belongs to which is unknown
        if "dqs" in row:
            body.setdefault("release", {})["dqs"] = rewrites
        rewrites = [""] * len(answers)
    body["readings"] = [
        {"question": question, "answers": names}
        for question, names in zip(rewrites, answers, strict=True)
    ]
    body["draft"] = draft = row["clarification_question"]
    parsed = take_apart(draft, len(answers)) or {"lead": draft, "options": []}
    texts = parsed["options"] if len(parsed["options"]) == len(answers) else rewrites
    options = [{"text": text, "reading": number} for number, text in enumerate(texts)]
    return Outcome(body, [{"action": "keep", "lead": parsed["lead"], "options": options}])


# ASQA: long answers over disambiguated pairs with their contexts.


def _to_asqa(outcome: Outcome) -> dict[str, Any] | None:
    if not outcome.values:
        return None
    pairs = []
    for reading in outcome.body["readings"]:
        context = reading.get("context") or {}
        pairs.append(
            {
                "question": reading["question"],
                "short_answers": list(reading["answers"]),
                "context": context.get("text") or _NO_CONTEXT,
                "wikipage": context.get("title") or None,
            }
        )
    told = []
    for value in outcome.values:
        pieces = value.get("knowledge") or ()
        knowledge = [
            {"content": one.get("content"), "wikipage": one.get("source")} for one in pieces
        ]
        told.append({"long_answer": value["text"], "knowledge": knowledge})
    titles = dict.fromkeys([*outcome.body.get("pages", ()), *outcome.pages])
    return {
        "sample_id": outcome.body["id"],
        "ambiguous_question": outcome.body["question"],
        "qa_pairs": pairs,
        "wikipages": [{"title": title} for title in titles],
        "annotations": told,
        **outcome.body.get("release", {}),
    }


def _from_asqa(row: Fields) -> Outcome:
    body = _body(row, "sample_id", "ambiguous_question", ("qa_pairs", "annotations"))
    titles = [page["title"] for page in row.get("wikipages") or ()]
    if body.get("release", {}).get("wikipages") == [{"title": title} for title in titles]:
        del body["release"]["wikipages"]  # nothing beside the titles
    body["pages"] = titles
    body["readings"] = [asqa_reading(pair) for pair in row["qa_pairs"]]
    values = []
    for one in row["annotations"]:
        pieces = one.get("knowledge") or ()
        knowledge = [
            {"content": piece.get("content"), "source": piece.get("wikipage")} for piece in pieces
        ]
        values.append({"text": one["long_answer"], "knowledge": knowledge})
    return Outcome(body, values)


def asqa_reading(pair: Fields) -> dict[str, Any]:
    """A reading of ASQA with its context, where it has one."""
    reading: dict[str, Any] = {
        "question": pair["question"],
        "answers": _texts(pair["short_answers"]),
    }
    text, title = pair.get("context") or "", pair.get("wikipage") or ""
    text = "" if text == _NO_CONTEXT else text
    if text or title:
        reading["context"] = {"title": title, "text": text}
    return reading


def _body(row: Fields, key: str, question: str, used: tuple[str, ...]) -> dict[str, Any]:
    """An item of a row; what the form has no place for goes along as it is."""
    body: dict[str, Any] = {"id": row[key], "question": row[question]}
    body["pages"] = list(row.get("viewed_doc_titles") or ())
    body["queries"] = list(row.get("used_queries") or ())
    taken = {key, question, *used, *_SEARCHED}
    if rest := {name: value for name, value in row.items() if name not in taken}:
        body["release"] = rest
    return body


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


_ANSWERS = ("generate", "validate")
RELEASES = {
    one.name: one
    for one in (
        Format("ambignq", "ambignq.json", _ANSWERS, _to_ambignq, _from_ambignq),
        Format("ambignq-full", "ambignq_full.json", _ANSWERS, _to_full, _from_ambignq),
        Format("cambignq", "cambignq.json", ("clarification",), _to_cambignq, _from_cambignq),
        Format("asqa", "asqa.jsonl", ("long-answer",), _to_asqa, _from_asqa),
    )
}
