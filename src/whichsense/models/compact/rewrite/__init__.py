"""Rewrites of the question: candidates, support in the evidence, the choice among them."""
