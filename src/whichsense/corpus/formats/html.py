"""The text of an HTML page, with its headings as sections."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from whichsense.corpus.outline import Page
from whichsense.errors import require

_DROPPED = "script, style, noscript, template, nav, footer, aside, form, iframe, svg, math, button, select, [hidden]"
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q rp rt ruby s samp small span "
    "strike strong sub sup time tt u var wbr".split()
)
_CELLS = frozenset(("td", "th"))
# Elements that need no end tag, and so say nothing about depth.
_SHALLOW = frozenset(
    "area base br col dd dt embed hr html body head img input li link meta option p source tbody td tfoot th thead tr "
    "track wbr".split()
)
_TAG = re.compile(r"<(/?)([a-zA-Z][\w:-]*+)[^<>]*+>")
# One that is left open takes the rest, as in a browser: no place is looked at twice.
SCRIPT = re.compile(r"<(script|style)\b.*?(?:</\1\s*+>|\Z)", re.DOTALL | re.IGNORECASE)
_DEEPEST = 2000


def page_of(source: str) -> tuple[str, Page]:
    """The <title> and the text. The tree is walked without recursion."""
    page = Page()
    if (
        _depth(source) > _DEEPEST
    ):  # made to break parsers: the time that ours takes grows with the square of the depth
        page.line(unescape(_TAG.sub(" ", SCRIPT.sub(" ", source))))
        return "", page
    tree = require("selectolax.lexbor", "documents").LexborHTMLParser(source)
    head = tree.css_first("title")
    title = head.text() if head else ""
    for node in tree.css(_DROPPED):
        node.decompose()
    if tree.body is not None:
        _walk(tree.body, page)
    return title, page


def _depth(source: str) -> int:
    """How deep the elements are nested at most, roughly."""
    depth = deepest = 0
    for close, tag in _TAG.findall(source):
        if tag.lower() not in _SHALLOW:
            depth = max(0, depth - 1) if close else depth + 1
            deepest = max(deepest, depth)
    return deepest


def _walk(body: Any, page: Page) -> None:
    held: list[str] = []  # the text since the last block
    stack: list[Any] = [body]  # nodes to go into, and the tags of blocks to be left
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if item in _CELLS:  # the cells of a row stay on one line
                held.append(" ")
            else:
                _end(page, held, item)
        elif item.tag == "-text":
            held.append(item.text_content or "")
        elif item.tag[0].isalpha():
            if item.tag not in _INLINE:
                if item.tag not in _CELLS:
                    _end(page, held)
                stack.append(item.tag)
            stack += reversed(list(item.iter(include_text=True)))
    _end(page, held)


def _end(page: Page, held: list[str], tag: str = "") -> None:
    """A block begins or ends: what was held becomes a line, or a heading."""
    text = "".join(held)
    held.clear()
    if tag in _HEADINGS:
        page.heading(_HEADINGS[tag], text)
    else:
        page.line(text)
