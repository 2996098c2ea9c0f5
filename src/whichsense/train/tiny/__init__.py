"""Tiny base models with random weights, so that every recipe runs on a CPU."""
