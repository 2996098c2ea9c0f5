"""Items: the rows of a questions file, in the form that a kind of annotation needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from whichsense.errors import BadInput
from whichsense.files import plain_suffix, read_bytes, read_json
from whichsense.lab.datasets.rows import IdMaker, Row, read_rows
from whichsense.studio.checks import Value
from whichsense.studio.kinds import JUDGED, KINDS, Kind
from whichsense.studio.releases import asqa_reading, from_annotation

PARTS = ("work", "training", "test", "gold", "attention", "agreed", "unread")
"""What items are for. Those that qualify have a right value; annotators agreed on some before, and some forms show no
reading to judge: neither is given out.
"""
_FIX = "See docs/studio.md for what an item needs."
_PASSED_ON = ("gold", "form", "suggestion", "queries", "release")
"""What an item has if its row has it."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question with everything that people are shown, or not shown, about it."""

    body: Value
    part: str = "work"
    gold: Value | None = None
    """The right value, of what qualifies."""
    uncertainty: float = 0.0
    difference: float = 0.0
    """How much its annotators differ."""
    number: int = 0
    """Its number in the project; 0: it is in none yet."""
    values: Mapping[str, Value] = field(default_factory=dict)
    """What was submitted for it, by annotator, where that was read too."""


def load_items(path: Path, kind: Kind, part: str = "work") -> list[Item]:
    """The items of a file: questions one a line, JSON lines, a list in JSON, a dataset's file, or a form of readings.

    Raises `BadInput` that names the record and what it lacks.
    """
    items = items_of(_rows(path), kind, part)
    if not items:
        raise BadInput(f"'{path}' has no questions. Write one a line, or a JSON object a line.")
    return items


def items_of(rows: Iterable[Row], kind: Kind, part: str = "work") -> list[Item]:
    """The items of rows."""
    ids = IdMaker()
    items = []
    for row in rows:
        body = _body(row, kind, ids)
        gold = row.value.get("value")
        if part != "work":
            _check_gold(row, kind, body, gold)
            items.append(Item(body, part, gold))
            continue
        is_shown = kind.name != "readings" or body["readings"]
        own = "agreed" if row.value.get("agreed") else "work" if is_shown else "unread"
        items.append(Item(body, own, None, _uncertainty(row)))
    return items


def _check_gold(row: Row, kind: Kind, body: Value, gold: Any) -> None:
    if not isinstance(gold, Mapping):
        raise row.bad("no 'value', the right annotation of an item that qualifies")
    wrong = [one for one in kind.check(body, gold) if one.level == "error"]
    if wrong:
        reason = wrong[0].reason.rstrip(".")
        raise row.bad(f"'value' is not right itself: {wrong[0].where}: {reason}")


def _rows(path: Path) -> Iterator[Row]:
    if plain_suffix(path) == ".txt":
        text = read_bytes(path).decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield Row({"question": line.strip()}, f"'{path}', line {number}", _FIX)
        return
    if plain_suffix(path) == ".json":
        value = read_json(path)
        if isinstance(value, dict) and "rubric" in value and "questions" in value:
            yield from _form_rows(path, value)
            return
    yield from read_rows(path, _FIX)


def _form_rows(path: Path, form: Value) -> Iterator[Row]:
    """The questions of a form of `whichsense evaluate readings`; the first carries what the form says of itself."""
    about = {name: value for name, value in form.items() if name != "questions"}
    for number, question in enumerate(form["questions"]):
        row = {**question, "form": about} if not number else question
        yield Row(row, f"'{path}', question {number + 1}", _FIX)


def _body(row: Row, kind: Kind, ids: IdMaker) -> dict[str, Any]:
    question = row.text("question", "ambiguous_question")
    if not question.strip():
        raise row.bad("the question is empty")
    key = row.text("id", "sample_id", default="") or ids.from_text(question)
    body: dict[str, Any] = {"id": key, "question": question}
    body |= {name: row.value[name] for name in _PASSED_ON if row.has(name)}
    if row.has("case"):
        body.setdefault("suggestion", _suggestion(row.value["case"]))
    if titles := _titles(row):
        body["pages"] = titles
    if row.has("used_queries"):
        body["queries"] = row.value["used_queries"]
    body |= {name: _needed(row, kind, name) for name in kind.needs}
    if kind.name == "clarification":
        body["draft"] = row.text("draft", "clarification_question", "clarification", default="")
    return body


def _needed(row: Row, kind: Kind, name: str) -> Any:
    """What an item of a kind cannot do without; a question without a reading to judge is one that nobody judges."""
    if kind.name == "readings":
        return [_judged(one) for one in row.rows(name, optional=True)]
    found = _NEEDED[name](row)
    if not found:
        raise row.bad(f"no '{name}', which the kind '{kind.name}' needs")
    return found


def _judged(reading: Row) -> Value:
    for name in JUDGED:
        if name not in reading.value:
            raise reading.bad(f"no field '{name}'")
    return reading.value


def _titles(row: Row) -> list[str]:
    """The pages that annotators of earlier stages read."""
    if row.has("viewed_doc_titles"):
        return list(row.texts("viewed_doc_titles"))
    if row.has("pages"):
        return list(row.texts("pages"))
    return [page.text("title") for page in row.rows("wikipages", optional=True)]


def _readings(row: Row) -> Any:
    """The readings of a row: its own, or those of AmbigNQ's, ASQA's or CAmbigNQ's fields."""
    if row.has("readings"):
        return [_own_reading(one) for one in row.rows("readings")]
    if row.has("qa_pairs"):
        return [asqa_reading(pair.value) for pair in row.rows("qa_pairs")]
    for annotation in row.rows("annotations", optional=True):
        pairs = annotation.rows("qaPairs", optional=True)
        if len(pairs) > 1:
            return list(map(_reading, pairs))
    if row.has("dqs"):
        answers = row.text_lists("clarification_answers")
        rewrites = row.texts("dqs")
        return [
            {"question": rewrite, "answers": list(own)}
            for rewrite, own in zip(rewrites, answers, strict=False)
        ]
    return []


def _own_reading(reading: Row) -> dict[str, Any]:
    answers = list(reading.texts("answers"))
    if not answers:
        raise reading.bad("'answers' are none")
    return {**reading.value, "question": reading.text("question"), "answers": answers}


def _reading(pair: Row) -> dict[str, Any]:
    question = pair.text("question").partition("|")[0].strip()
    return {"question": question, "answers": list(pair.texts("answer"))}


def _annotations(row: Row) -> Any:
    """Annotations as generators write them, from AmbigNQ's form or as they are."""
    found = []
    for one in row.rows("annotations"):
        try:
            value = one.value if one.has("outcome") else from_annotation(one.value)
        except (KeyError, TypeError, ValueError):
            raise one.bad("no annotation in AmbigNQ's form") from None
        if wrong := KINDS["generate"].check_shape(value):
            raise one.bad(f"{wrong[0].where}: {wrong[0].reason.rstrip('.')}")
        found.append(value)
    return found


def _clarification(row: Row) -> str:
    return row.text("clarification_question", "clarification", default="")


def _two_answers(row: Row) -> list[str]:
    answers = list(row.texts("answers", optional=True))
    if len(answers) != 2:
        raise row.bad("'answers' must be two long answers to compare")
    return answers


_NEEDED: dict[str, Callable[[Row], Any]] = {
    "readings": _readings,
    "annotations": _annotations,
    "clarification": _clarification,
    "answers": _two_answers,
}


def _suggestion(case: Value) -> dict[str, Any]:
    """What a case of `whichsense ask --json` suggests to who looks for answers."""
    readings = case.get("readings") or []
    pairs = [{"question": one["question"], "answers": [one["answer"]]} for one in readings]
    if len(pairs) > 1:
        return {"outcome": "several", "pairs": pairs}
    return (
        {"outcome": "single", "answers": pairs[0]["answers"]} if pairs else {"outcome": "nothing"}
    )


def suggest(item: Item, kind: Kind, suggested: Value) -> Item:
    """An item with what a system suggests for it: a form's value, or a prediction as `whichsense predict` writes it.

    Answers or pairs for questions, a clarification question to revise, a long answer.
    """
    if not isinstance(suggested, Mapping):
        raise BadInput("Suggestions are an object: the id of each question with what is suggested.")
    given = suggested.get(item.body["id"])
    if given is None or item.part != "work":
        return item
    body = dict(item.body)
    if kind.name == "clarification" and isinstance(given, str):
        body["draft"] = given
    elif isinstance(given, str):
        body["suggestion"] = {"text": given}
    elif isinstance(given, Mapping):
        body["suggestion"] = dict(given)
    else:
        pairs = [
            one if isinstance(one, Mapping) else {"answer": one, "question": ""} for one in given
        ]
        body["suggestion"] = _suggestion({"readings": pairs})
    return replace(item, body=body)


def _uncertainty(row: Row) -> float:
    """How unsure a system was, from 0 to 1: as the row says, or by its case's own probabilities."""
    given = row.value.get("uncertainty")
    if isinstance(given, int | float):
        return float(given)
    case = row.value.get("case")
    if not isinstance(case, Mapping):
        return 0.0
    ambiguous = case.get("ambiguous")
    chances = [ambiguous] if ambiguous is not None else []
    for name in ("readings", "possible"):
        chances += [one.get("confidence", 0.0) for one in case.get(name) or ()]
    spread = [4 * chance * (1 - chance) for chance in chances]
    return max(0.0, sum(spread) / len(spread)) if spread else 0.0
