"""HTML and SVG elements, and a page that needs no other file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

_VOID = ("input", "meta")  # elements without content and without an end tag


def tag(name: str, /, *content: str, **attributes: object) -> str:
    """An element. Content is markup already; attribute values are escaped, floats rounded to a tenth.

    In attribute names "_" stands for "-", and a trailing "_" is dropped. An attribute that is None is left out.

    >>> tag("text", "a &lt; b", x=1.25, text_anchor="end", class_="ink")
    '<text x="1.2" text-anchor="end" class="ink">a &lt; b</text>'
    >>> tag("rect", width=3)
    '<rect width="3"></rect>'
    >>> tag("input", type="radio")
    '<input type="radio">'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None:
            continue
        # A tenth of a unit is finer than a screen's pixel.
        shown = f"{value:.1f}" if isinstance(value, float) else str(value)
        attribute = key.removesuffix("_").replace("_", "-")
        parts.append(f'{attribute}="{escape(shown)}"')
    start = f"<{' '.join(parts)}>"
    return start if name in _VOID else f"{start}{''.join(content)}</{name}>"


def text(name: str, content: object, /, **attributes: object) -> str:
    """An element that holds plain text.

    >>> text("b", "a < b")
    '<b>a &lt; b</b>'
    """
    return tag(name, escape(str(content)), **attributes)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = ""
) -> str:
    """A table. Column names are plain text; rows hold `td` elements."""
    head = [text("th", column, scope="col") for column in columns]
    body = [tag("tr", *row) for row in rows]
    top = text("caption", caption) if caption else ""
    content = tag("table", top, tag("tr", *head), *body)
    # A wide table scrolls by itself.
    return tag("div", content, class_="scroll")


def svg(width: int, height: float, parts: Sequence[str], label: str) -> str:
    """A drawing, with a label for those who cannot see it."""
    return tag(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=label,
    )


def style() -> str:
    """The style sheet of pages and drawings, as an element."""
    sheet = files("whichsense.evaluation.report").joinpath("style.css")
    return tag("style", sheet.read_text(encoding="utf-8"))


def page(title: str, *body: str, head: str = "") -> str:
    """A whole page under a heading. `head` is added to what every page has in its head."""
    screen = "width=device-width, initial-scale=1"
    parts = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content=screen),
        text("title", title),
        style(),
        head,
    ]
    html = tag(
        "html", tag("head", *parts), tag("body", text("h1", title), *body), lang="en"
    )
    return f"<!doctype html>{html}\n"
