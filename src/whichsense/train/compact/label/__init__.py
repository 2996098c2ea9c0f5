"""Labelled answers, and the task that learns labels from them."""
