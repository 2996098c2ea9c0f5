"""Calibrated probabilities: of answers, of ambiguity, of rewrites."""
