"""From a question to a lexical query: which words count, and how passages are written so that they count rightly.

Everything here was chosen on AmbigNQ's training questions over the local Wikipedia; docs/results.md has the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import tantivy

ANALYZER = "english-content"
# Lucene's list: never indexed.
_EMPTY_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
    "this to was will with".split()
)
# What every question has: dropped from questions only ("The Who" can still be found).
QUESTION_WORDS = _EMPTY_WORDS | frozenset(
    "who whom whose what which when where why how does did do has have had were been being many much i you he she "
    "its s t we our your from about after over than out up all can his her him them also one would could "
    "should".split()
)
# tantivy's BM25 has b = 0.75 built in, which punishes long passages too much. Filler about as long as a mean passage
# makes lengths vary half as much, as b = 0.375 would. It is indexed but not stored, and costs no disk.
_FILLER = " zz" * 60


def _words() -> tantivy.TextAnalyzerBuilder:
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(40))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
    )


def content_analyzer() -> tantivy.TextAnalyzer:
    """How passages are indexed: words without accents, empty ones dropped, stemmed."""
    dropped = tantivy.Filter.custom_stopword(sorted(_EMPTY_WORDS))
    return _words().filter(dropped).filter(tantivy.Filter.stemmer("english")).build()


_PLAIN, _CONTENT = _words().build(), content_analyzer()


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The form in which a word is indexed; an empty word stands for itself."""
    stemmed = _CONTENT.analyze(word)
    return stemmed[0] if stemmed else word


def question_words(question: str) -> list[str]:
    """All words of a question, lower-cased and without accents."""
    return _PLAIN.analyze(question)


def content_words(words: Sequence[str]) -> list[str]:
    """Those that say what is asked about, each once; all of them where a question has no others.

    >>> content_words(question_words("Who were the parents of Ötzi?"))
    ['parents', 'otzi']
    """
    return list(dict.fromkeys(word for word in words if word not in QUESTION_WORDS) or dict.fromkeys(words))


def body_text(title: str, text: str) -> str:
    """What is indexed of a passage. The title stands there twice: the simplest weight, and one field is fastest."""
    return f"{title}\n{title}\n{text}{_FILLER}"


def any_of(schema: tantivy.Schema, field: str, words: Sequence[str]) -> tantivy.Query | None:
    """Passages with any of the words, by BM25; None where there is no word. A flat OR, so that tantivy can skip."""
    terms = [tantivy.Query.term_query(schema, field, term, "freq") for term in dict.fromkeys(map(stem, words))]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms]) if terms else None
