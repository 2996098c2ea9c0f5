"""Tokenizers and sentence splitters that the official scripts use."""
