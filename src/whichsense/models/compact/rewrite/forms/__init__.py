"""Rewrites from the evidence by forms: slots with their grammar, filled from titles and sentences."""
