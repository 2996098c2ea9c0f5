"""The form as a page: every question with its readings, four marks to give for each, and a button for the result.

What the system thinks of a reading, and the dataset's own answers, are not shown: they would bias the marks.
"""

from __future__ import annotations

import json
from importlib.resources import files

from whichsense.evaluation.readings.form import (
    RUBRIC,
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
    kind = "with several readings" if form.several else "drawn"
    counts = f"{len(form.questions):,} questions {kind}, {form.shown:,} readings"
    return f"{form.dataset}: {counts}, seed {form.seed}."


def _rubric() -> str:
    rows = []
    for mark, meaning in RUBRIC.items():
        rows.append([text("td", mark), text("td", meaning)])
    return tag("div", table(("mark", "yes if"), rows, "The rubric"), id="rubric")


def _reader() -> str:
    field = tag("input", id="reader", autocomplete="off")
    return tag("p", tag("label", "Your name: ", field))


def _question(number: int, question: JudgedQuestion) -> str:
    readings = []
    for rank, reading in enumerate(question.readings):
        readings.append(_reading(number, rank, reading))
    if not readings:
        readings.append(text("p", "No reading was shown."))
    heading = text("h2", f"{number + 1}. {question.question}")
    return tag("section", heading, *readings)


def _reading(number: int, rank: int, reading: ShownReading) -> str:
    parts = [text("h3", reading.rewrite), tag("p", text("b", reading.answer))]
    if reading.source:
        parts.append(text("p", f"Without a rewrite: {reading.source}"))
    if reading.sentence or reading.title:
        title = text("cite", f"[{reading.title}]")
        parts.append(tag("blockquote", _marked(reading), " ", title))
    marks = []
    for mark in RUBRIC:
        marks.append(_mark(number, rank, mark))
    parts.append(tag("div", *marks, class_="marks"))
    return tag("article", *parts)


def _marked(reading: ShownReading) -> str:
    """The evidence sentence with the answer marked in it."""
    start, end = reading.start, reading.end
    before = text("span", reading.sentence[:start])
    answer = text("mark", reading.sentence[start:end]) if start < end else ""
    after = text("span", reading.sentence[end:])
    return before + answer + after


def _mark(number: int, rank: int, mark: str) -> str:
    """Yes or no. The names of the buttons say where in the form the mark belongs."""
    choices = []
    for value in ("yes", "no"):
        button = tag("input", type="radio", name=f"{number}/{rank}/{mark}", value=value)
        choices.append(tag("label", button, value))
    return tag("fieldset", text("legend", mark, title=RUBRIC[mark]), *choices)


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
