"""The form as a page: every question with its readings, four marks to give for each, and a button for the result.

What the system thinks of a reading, and the dataset's own answers, are not shown: they would bias the marks.
"""

from __future__ import annotations

import json
from importlib.resources import files

from whichsense.evaluation.readings.form import (
    RUBRIC,
    WITHOUT_REWRITE,
    Form,
    JudgedQuestion,
    ShownReading,
)
from whichsense.evaluation.report.html import page, table, tag, text

_HELP = (
    "Mark every reading by the rubric. Tab moves to the next mark, y and n answer it and move on. The browser keeps "
    "the marks of this page until the form is downloaded and after. When all are given, download the form and send "
    "it back."
)
_KINDS = {
    "several": "questions with several readings",
    "all": "questions",
    "ambiguous": "questions that annotators call ambiguous",
}


def build_form_page(form: Form, name: str) -> bytes:
    """The page, which needs no other file. `name` is how the downloaded form's name begins."""
    sections = []
    for number, question in enumerate(form.questions):
        sections.append(_question(number, question))
    body = [
        text("p", _describe(form)),
        text("p", _HELP),
        _rubric(),
        _reader(),
        *sections,
        _footer(),
        _data(form),
        tag("script", _own_file("page.js")),
    ]
    head = tag("style", _own_file("page.css"))
    title = f"Readings of {form.dataset}: {name}"
    html = page(title, *body, head=head)
    # Half a surrogate pair has no UTF-8.
    return html.encode(errors="replace")


def _describe(form: Form) -> str:
    counts = f"{len(form.questions):,} {_KINDS[form.draw]}, {form.shown:,} readings"
    return f"{form.dataset}: {counts}, seed {form.seed}."


def _rubric() -> str:
    rows = []
    for mark, meaning in RUBRIC.items():
        cells = (mark, meaning, WITHOUT_REWRITE[mark])
        rows.append([text("td", cell) for cell in cells])
    columns = ("mark", "with a rewrite: yes if", "without one: yes if")
    return tag("div", table(columns, rows, "The rubric"), id="rubric")


def _reader() -> str:
    field = tag("input", id="reader", autocomplete="off")
    return tag("p", tag("label", "Your name: ", field))


def _question(number: int, question: JudgedQuestion) -> str:
    readings = []
    for rank, reading in enumerate(question.readings):
        has_rewrite = reading.rewrite != question.question
        readings.append(_reading(number, rank, reading, has_rewrite))
    if not readings:
        readings.append(text("p", "No reading was shown."))
    heading = text("h2", f"{number + 1}. {question.question}")
    return tag("section", heading, *readings)


def _reading(number: int, rank: int, reading: ShownReading, has_rewrite: bool) -> str:
    rubric = RUBRIC if has_rewrite else WITHOUT_REWRITE
    told_apart = reading.rewrite if has_rewrite else reading.source
    parts = [text("h3", told_apart or "No label, no source")]
    parts.append(tag("p", text("b", reading.answer)))
    if not has_rewrite:
        parts.append(text("p", "Without a rewrite."))
    if reading.sentence or reading.title:
        title = text("cite", f"[{reading.title}]")
        parts.append(tag("blockquote", _marked(reading), " ", title))
    marks = []
    for mark, meaning in rubric.items():
        marks.append(
            _mark(f"{number}/{rank}/{mark}", text("legend", mark, title=meaning))
        )
    parts.append(tag("div", *marks, class_="marks"))
    return tag("article", *parts)


def _marked(reading: ShownReading) -> str:
    """The evidence sentence with the answer marked in it."""
    start, end = reading.start, reading.end
    before = text("span", reading.sentence[:start])
    answer = text("mark", reading.sentence[start:end]) if start < end else ""
    after = text("span", reading.sentence[end:])
    return before + answer + after


def _mark(name: str, legend: str) -> str:
    """Yes or no. The buttons' name says where in the form the mark belongs."""
    choices = []
    for value in ("yes", "no"):
        button = tag("input", type="radio", name=name, value=value)
        choices.append(tag("label", button, value))
    return tag("fieldset", legend, *choices)


def _footer() -> str:
    status = text("output", "", id="status")
    button = text("button", "Download filled form", id="download", type="button")
    return tag("footer", status, button)


def _data(form: Form) -> str:
    """The empty form, for the script to fill in."""
    body = json.dumps(form.to_json())
    # Nothing in it may end the script element.
    return tag(
        "script", body.replace("<", "\\u003c"), id="form", type="application/json"
    )


def _own_file(name: str) -> str:
    own = files("whichsense.evaluation.readings").joinpath(name)
    return own.read_text(encoding="utf-8")
