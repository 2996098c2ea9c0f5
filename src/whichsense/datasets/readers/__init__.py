"""One short reader for each schema: the rows of a file become records."""
