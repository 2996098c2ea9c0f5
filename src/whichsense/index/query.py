"""From a question to a lexical query: which words count, and how much."""

from __future__ import annotations

import tantivy

from whichsense.types import Passage

ANALYZER = "english"


def analyzer() -> tantivy.TextAnalyzer:
    """Words lower-cased, accents folded, stemmed: the same for passages and questions."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(40))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
        .filter(tantivy.Filter.stemmer("English"))
        .build()
    )


_ANALYZE = analyzer()
_STOP = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
    "this to was will with who whom whose what which when where why how does did do has have had were been being "
    "many much i you he she its s t we our your from".split()
)


def body_text(passage: Passage) -> str:
    """What is searched of a passage: its title is part of what it says."""
    return f"{passage.title}\n{passage.text}"


def lexical_query(schema: tantivy.Schema, question: str) -> tantivy.Query | None:
    """Any of the question's words, except those that every question has; None where there is no word at all."""
    words = _ANALYZE.analyze(question)
    kept = [word for word in words if word not in _STOP] or words
    terms = [tantivy.Query.term_query(schema, "body", word, "freq") for word in dict.fromkeys(kept)]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms]) if terms else None
