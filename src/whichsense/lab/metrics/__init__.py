"""Metrics: pure functions, each pinned to the official scripts' output. One file for each family."""
