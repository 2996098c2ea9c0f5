"""A Wikipedia dump (`pages-articles.xml.bz2`, multistream or not): articles, redirects, disambiguation pages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whichsense.corpus.feed import Feed, Step, short
from whichsense.corpus.wikipedia.dump import RawPage, pages
from whichsense.corpus.wikipedia.senses import is_disambiguation, senses
from whichsense.corpus.wikipedia.stripping import PageStripper
from whichsense.types import Redirect

_REDIRECT = re.compile(
    r"\s*#\s*(?:redirect|weiterleitung|redirection|redirección|перенаправление)\s*:?\s*\[\[([^\[\]|#]+)",
    re.I,
)

Item = RawPage | Step


def read_dump(feed: Feed) -> Iterator[Step]:
    """One document for an article, one redirect for a redirect, one sense for each entry of a disambiguation page.

    Only the main namespace is read. What an earlier run consumed is parsed as XML but not stripped of markup.
    """
    with feed.open() as reader, PageStripper() as stripper:
        for item, page in stripper.strip(_items(feed, pages(feed, reader))):
            if not isinstance(item, RawPage):
                yield item
            elif page is None or not page.text:
                yield feed.broken(
                    _where(item),
                    "no text is left when templates and tables are taken out.",
                )
            else:
                feed.report.rough += page.by_patterns
                yield feed.document(
                    _where(item), item.id, item.title, page.text, sections=page.sections
                )


def _items(feed: Feed, raw: Iterator[RawPage]) -> Iterator[tuple[Item, str | None]]:
    """What is to be handed over, in order: articles with their markup, the rest as it is."""
    for page in raw:
        if page.ns != "0":
            feed.tick()
            continue
        steps = _steps(feed, page)
        for step in steps:
            if not feed.passed():
                yield step, None
        if not steps and not feed.passed():
            yield page, page.text


def _steps(feed: Feed, page: RawPage) -> list[Step]:
    """The steps of a page that is not an article; none for one that is."""
    if page.text is None:
        return [
            feed.broken(
                _where(page), f"the page is over {feed.limits.page // 2**20} MB."
            )
        ]
    if not page.title or not page.id:
        return [feed.broken(_where(page), "a page without title or id.")]
    if page.redirect:
        return [Redirect(page.title, short(page.redirect))]
    if found := _REDIRECT.match(
        page.text
    ):  # dumps of before 2009 have no <redirect> element
        return [Redirect(page.title, short(found[1].replace("_", " ")))]
    if not page.text or page.text.isspace():
        return [feed.broken(_where(page), "the page is empty.")]
    return (
        list(senses(page.title, page.text))
        if is_disambiguation(page.title, page.text)
        else []
    )


def _where(page: RawPage) -> str:
    return f"page '{page.title}'" if page.title else f"page {page.id or '?'}"
