"""Search by words: BM25 on tantivy."""
