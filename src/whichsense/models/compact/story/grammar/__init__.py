"""Questions and answers as statements, by rules of English: word lists, verbs, questions with a gap, what fills it."""
