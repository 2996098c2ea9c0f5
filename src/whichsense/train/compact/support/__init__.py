"""Trains the support judge: examples of sentences and passages, the network, the nets over its features."""
