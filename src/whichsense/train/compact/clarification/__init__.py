"""Fit the rankers of the compact clarifier: what an option says, and what the options have in common."""
