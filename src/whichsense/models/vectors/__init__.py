"""Encoders that turn a text into one vector: static word vectors, MiniLM."""
