"""Wiki markup → plain text with sections. Templates, tables, references, files and categories go; link texts stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import unescape
from typing import Any

import mwparserfromhell
from mwparserfromhell import nodes

from whichsense.corpus.outline import Page

LONGEST_PARSED = 2**20
"""Longer pages are lists and tables without end, and are stripped by patterns alone."""

# Parts of an article that hold no prose but what other people wrote.
_BACK_MATTER = frozenset(
    (
        "references",
        "external links",
        "see also",
        "further reading",
        "notes",
        "footnotes",
        "sources",
        "citations",
    )
)
_DROPPED_TAGS = frozenset(
    "ref references table gallery math chem timeline syntaxhighlight source imagemap score hiero templatestyles graph "
    "mapframe maplink inputbox categorytree noinclude includeonly indicator section".split()
)
_NAMESPACE = re.compile(
    r"\s*:?\s*(file|image|category|media|special|template|portal|help|user|draft)\s*:",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(r"\s*(?:[a-z]{2,3}|simple)(?:-[a-z]+)*:\S")
_QUOTES = re.compile(r"'{2,5}")
_SWITCH = re.compile(r"__[A-Z]{3,}__")
_SPACES = re.compile(r"[ \t]{2,}")
_EMPTY_BRACKETS = re.compile(r"\([;,:\s]*\)|\[\s*\]")
_OPEN_BRACKET = re.compile(r"\(\s*[;,:]\s*")
_SPACE_BEFORE = re.compile(r"[ \t]([,.;:!?)](?:\s|$))")

# What is taken out before the parser sees it: it carries no text, and most of the parser's work.
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# Each stops at the next tag of its kind, so that a page of open tags takes no longer than its length.
# Groups are atomic, not possessive: those of Python 3.11.2, which Debian 12 has, fail where they match nothing.
_REF = re.compile(
    r"<ref\b[^<>]*/>|<ref\b[^<>]*>[^<]*+(?>(?:<(?!/?ref\b)[^<]*+)*)</ref\s*>",
    re.IGNORECASE,
)
_BLOCK = r"gallery|math|timeline|syntaxhighlight|score|imagemap|templatestyles"
_OTHER_BLOCK = re.compile(
    rf"<(?:{_BLOCK})\b[^<>]*/>|<({_BLOCK})\b[^<>]*>[^<]*+(?>(?:<(?!/?(?:{_BLOCK})\b)[^<]*+)*)</\1\s*>",
    re.IGNORECASE,
)


# A table that holds no other: lines from "{|" to "|}". Repeated, it takes nested ones from the inside outwards.
_TABLE = re.compile(
    r"^[ \t:*]*\{\|[^\n]*\n(?>(?:(?![ \t:*]*(?:\{\||\|\}))[^\n]*\n)*)[ \t:*]*\|\}(?!\})",
    re.MULTILINE,
)


def plain(wikitext: str) -> Page:
    """The text of a page by the parser, heading by heading."""
    page = Page()
    code = mwparserfromhell.parse(_lightened(wikitext), skip_style_tags=True)
    part: list[str] = []
    shown = True
    for node in code.nodes:
        if isinstance(node, nodes.Heading):
            if shown:
                _add(page, "".join(part))
            part = []
            shown = _open(page, node.level, _flat(node.title.nodes))
        elif shown:
            part.append(_text(node))
    if shown:
        _add(page, "".join(part))
    return page


def _lightened(wikitext: str) -> str:
    """Without what holds no text of the article, whichever way the rest is parsed."""
    wikitext = _OTHER_BLOCK.sub("", _REF.sub("", _COMMENT.sub("", wikitext)))
    for _ in range(10):
        wikitext, changed = _TABLE.subn("", wikitext)
        if not changed:
            break
    return wikitext


def _open(page: Page, level: int, heading: str) -> bool:
    """Open a section; False where nothing of it is wanted."""
    heading = _QUOTES.sub("", heading).strip()
    if heading.lower() in _BACK_MATTER:
        return False
    page.heading(level, heading, shown=False)
    return True


def _add(page: Page, text: str) -> None:
    for line in _tidied(text).split("\n"):
        page.line(line)


def _tidied(text: str) -> str:
    """Text without the traces of what was taken out: quotes for bold, empty brackets, spaces before a comma."""
    text = _SPACES.sub(" ", _SWITCH.sub("", _QUOTES.sub("", text)))
    text = _OPEN_BRACKET.sub("(", _EMPTY_BRACKETS.sub("", text))
    return _SPACE_BEFORE.sub(r"\1", text)


def _flat(items: Iterable[Any]) -> str:
    return "".join(map(_text, items))


def _text(node: Any) -> str:
    """What a reader of the page would read of a node."""
    if isinstance(node, nodes.Text):
        return str(node.value)
    write = _WRITERS.get(type(node))
    return write(node) if write else ""


def _link(node: Any) -> str:
    target = str(node.title)
    if _NAMESPACE.match(target) and not (node.text and target.lstrip().startswith(":")):
        return ""
    if node.text is not None:
        return _flat(node.text.nodes)
    return (
        "" if _LANGUAGE.match(target) else _flat(node.title.nodes).strip().lstrip(":")
    )


def _external_link(node: Any) -> str:
    return _flat(node.title.nodes) if node.title is not None else ""


def _tag(node: Any) -> str:
    name = str(node.tag).strip().lower()
    if name in _DROPPED_TAGS:
        return ""
    if name in ("br", "hr"):
        return "\n"
    return (
        _flat(node.contents.nodes)
        if node.contents is not None and not node.self_closing
        else ""
    )


def _entity(node: Any) -> str:
    return unescape(str(node))


def _template(node: Any) -> str:
    """The few templates that stand for words within a sentence; all others are left out."""
    name = str(node.name).strip().lower().replace("_", " ")
    values = [
        _flat(param.value.nodes).strip() for param in node.params if not param.showkey
    ]
    if name in ("convert", "cvt") and len(values) > 1:
        return f"{values[0]} {values[1]}"
    if (
        name
        in ("nowrap", "nobr", "small", "big", "em", "strong", "sic", "abbr", "tooltip")
        and values
    ):
        return values[0]
    if (
        name in ("lang", "transl", "transliteration") or name.startswith("lang-")
    ) and values:
        return values[-1]
    if name in ("circa", "c."):
        return f"c. {values[0]}" if values else "c. "
    return _MARKS.get(name, "")


_MARKS = {
    "ndash": "–",
    "mdash": "—",
    "snd": " – ",
    "spaced ndash": " – ",
    "nbsp": " ",
    "'": "'",
    "·": " · ",
    "!": "|",
}
_WRITERS: dict[type, Callable[[Any], str]] = {
    nodes.Wikilink: _link,
    nodes.ExternalLink: _external_link,
    nodes.Tag: _tag,
    nodes.HTMLEntity: _entity,
    nodes.Template: _template,
}

_INNERMOST = re.compile(r"\{\{[^{}]*\}\}|\{\|[^{}]*?\|\}")
_MEDIA = re.compile(
    r"\[\[\s*(?:file|image|category|media)\s*:[^\[\]]*+(?>(?:\[\[[^\[\]]*+\]\][^\[\]]*+)*)\]\]",
    re.IGNORECASE,
)
_OTHER_LANGUAGE = re.compile(
    r"\[\[(?:[a-z]{2,3}|simple)(?:-[a-z]+)*:[^\[\]|\s][^\[\]|]*\]\]"
)
_INTERNAL = re.compile(r"\[\[(?>(?:[^\[\]|]*\|)*)([^\[\]|]*)\]\]")
_EXTERNAL = re.compile(r"\[(?:https?:)?//[^\s\[\]]*\s?([^\[\]\n]*)\]")
_ANY_TAG = re.compile(r"<[^<>]*>")
_HEADING = re.compile(r"^(={1,6})(.{1,300}?)\1[ \t]{0,20}$", re.MULTILINE)
_LIST = re.compile(r"^[*#:;]+\s*", re.MULTILINE)


def rough_line(wikitext: str) -> str:
    """Markup taken out by patterns alone, from the inside outwards: quick, and good enough for a line."""
    wikitext = _lightened(wikitext)
    for _ in range(10):
        wikitext, changed = _INNERMOST.subn("", wikitext)
        if not changed:
            break
    wikitext = _INTERNAL.sub(r"\1", _OTHER_LANGUAGE.sub("", _MEDIA.sub("", wikitext)))
    wikitext = _ANY_TAG.sub("", _EXTERNAL.sub(r"\1", wikitext))
    return _tidied(_LIST.sub("", unescape(wikitext)))


def rough(wikitext: str) -> Page:
    """The text of a page by patterns alone, for pages that the parser cannot manage."""
    page, shown, at = Page(), True, 0
    for heading in _HEADING.finditer(wikitext):
        if shown:
            _add(page, rough_line(wikitext[at : heading.start()]))
        shown, at = _open(page, len(heading[1]), rough_line(heading[2])), heading.end()
    if shown:
        _add(page, rough_line(wikitext[at:]))
    return page
