"""Clauses of sentences that hold an answer, and the forms that are filled from them."""
