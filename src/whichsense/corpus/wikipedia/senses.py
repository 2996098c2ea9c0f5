"""Disambiguation pages: the list of what a name may mean, which is the list of readings of a question about it."""

from __future__ import annotations

import re

from whichsense.corpus.feed import short
from whichsense.corpus.wikipedia.wikitext import rough_line
from whichsense.types import Sense

# Templates by which a page says that it is one, in English and in the larger other Wikipedias.
_MARK = re.compile(
    r"\{\{\s*(?:disambig(?:uation)?(?:[ -](?:page|cleanup))?|disamb|dab|hndis(?:-cleanup)?|geodis|mathdab|numberdis"
    r"|roaddis|schooldis|hospitaldis|callsigndis|mil-unit-dis|shipindex|(?:[\w-]+ ){1,3}disambiguation"
    r"|begriffsklärung|homonymie|desambiguación|desambiguação|disambigua|doorverwijspagina|неоднозначность"
    r"|ujednoznacznienie|förgrening|消歧义|曖昧さ回避)\s*(?:\||\}\})|__DISAMBIG__",
    re.IGNORECASE,
)
_TITLE_END = re.compile(
    r"\s*\((?:disambiguation|begriffsklärung|homonymie|desambiguación|disambigua)\)$",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^=+([^=]*)=+\s*$")
_LINK = re.compile(r"\[\[([^\[\]|#]+)(?:#[^\[\]|]*)?(?:\|[^\[\]]*)?\]\]")
_NO_ARTICLE = re.compile(
    r"\s*:?\s*(?:file|image|category|special|wikt|wiktionary|[a-z]{2,3}):",
    re.IGNORECASE,
)


_OTHER_SECTIONS = ("see also", "references", "external links", "notes")


def is_disambiguation(title: str, wikitext: str) -> bool:
    """Whether a page lists what its name may mean.

    >>> is_disambiguation("Mercury", "* [[Mercury (planet)]]\\n{{Disambiguation|geo}}")
    True
    >>> is_disambiguation("Mercury (planet)", "It is [[hot]].{{disambiguation needed|date=May 2020}}")
    False
    """
    return bool(_TITLE_END.search(title) or _MARK.search(wikitext))


def senses(title: str, wikitext: str) -> list[Sense]:
    """One for each list entry that links to an article, but for those under "See also".

    >>> senses("Java (disambiguation)", "* '''[[Java]]''', an island\\n==See also==\\n* [[Jaffa]]")
    [Sense(name='Java', title='Java', gloss='Java, an island')]
    """
    name = _TITLE_END.sub("", title)
    entries: dict[str, Sense] = {}  # by the title of the article
    wanted = True
    for line in wikitext.split("\n"):
        if heading := _HEADING.match(line):
            wanted = heading[1].strip().lower() not in _OTHER_SECTIONS
        elif wanted and line.startswith(("*", "#")):
            target = _first_article(line)
            if target:
                gloss = short(rough_line(line))
                entries.setdefault(target, Sense(name, target, gloss))
    return list(entries.values())


def _first_article(line: str) -> str:
    """The title of the first article that a line links to; empty where it links to none."""
    for link in _LINK.findall(line):
        if not _NO_ARTICLE.match(link):
            target = short(link.replace("_", " "))
            # Titles begin with a capital, links to them need not.
            return target[:1].upper() + target[1:]
    return ""
