"""From a question to a lexical query: which words count, and how passages are written so that they count rightly.

Everything here was chosen on AmbigNQ's training questions over the local Wikipedia; docs/results.md has the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import tantivy

from whichsense.text.function_words import QUESTION_WORDS, UNINDEXED_WORDS

ANALYZER = "english-content"
# What the other number of a word counts beside the word itself. A full count would let rare plurals lead astray.
_OTHER_NUMBER = 0.3


def _words() -> tantivy.TextAnalyzerBuilder:
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(40))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
    )


def content_analyzer() -> tantivy.TextAnalyzer:
    """How passages are indexed: words without accents, empty ones dropped.

    They are not stemmed: it found hardly more and took a quarter of the time of building and of searching.
    Questions ask for a word's singular and plural instead.
    """
    unindexed = tantivy.Filter.custom_stopword(sorted(UNINDEXED_WORDS))
    return _words().filter(unindexed).build()


_PLAIN = _words().build()
_STEM = _words().filter(tantivy.Filter.stemmer("english")).build()


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """A word without its ending."""
    stemmed = _STEM.analyze(word)
    return stemmed[0] if stemmed else word


def _other_number(word: str) -> str | None:
    """The singular of a plural and the plural of anything else; None for words that have hardly one.

    >>> [_other_number(word) for word in ("pumas", "city", "countries", "bus", "class", "cat", "tower", "1984")]
    ['puma', 'cities', 'country', None, None, None, 'towers', None]
    """
    if len(word) < 4 or not word.isalpha() or word.endswith(("ss", "us", "is")):
        return None
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith("s"):
        return word[:-1]
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


def question_words(question: str) -> list[str]:
    """All words of a question, lower-cased and without accents."""
    return _PLAIN.analyze(question)


def content_words(words: Sequence[str]) -> list[str]:
    """Those that say what is asked about, each once; all of them where a question has no others.

    >>> content_words(question_words("Who were the parents of Ötzi?"))
    ['parents', 'otzi']
    """
    content = [word for word in words if word not in QUESTION_WORDS]
    return list(dict.fromkeys(content or words))


def body_text(title: str, text: str) -> str:
    """What is indexed of a passage. The title stands there twice: the simplest weight, and one field is fastest."""
    return f"{title}\n{title}\n{text}"


def query_terms(words: Sequence[str]) -> list[tuple[str, float]]:
    """The terms that a question asks for, and what each counts: its words, and their other number for less.

    >>> query_terms(["pumas", "cat"])
    [('pumas', 1.0), ('puma', 0.3), ('cat', 1.0)]
    """
    terms = []
    for word in words:
        terms.append((word, 1.0))
        if other := _other_number(word):
            terms.append((other, _OTHER_NUMBER))
    return terms


def any_of(
    schema: tantivy.Schema, field: str, terms: Sequence[tuple[str, float]]
) -> tantivy.Query:
    """Passages with any of the terms, by BM25; each term with its boost. A flat OR, so that tantivy can skip."""
    optional = []
    for term, boost in terms:
        query = tantivy.Query.term_query(schema, field, term, "freq")
        if boost != 1:
            query = tantivy.Query.boost_query(query, boost)
        optional.append((tantivy.Occur.Should, query))
    return tantivy.Query.boolean_query(optional)
