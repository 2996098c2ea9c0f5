"""Predictions over datasets, scores beside gold, statistics and reports."""
