"""From a question to a lexical query: which words count, and how much."""

from __future__ import annotations

import tantivy

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
    "a an and are as at be by did do does for from had has have in is it of on or that the to was were what when where which who whom whose why how will with".split()
)


def lexical_query(schema: tantivy.Schema, question: str) -> tantivy.Query | None:
    words = _ANALYZE.analyze(question)
    kept = [word for word in words if word not in _STOP] or words
    if not kept:
        return None
    clauses = []
    for word in dict.fromkeys(kept):
        clauses.append((tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", word, "freq")))
        title = tantivy.Query.term_query(schema, "title", word, "freq")
        clauses.append((tantivy.Occur.Should, tantivy.Query.boost_query(title, 0.5)))
    return tantivy.Query.boolean_query(clauses)
