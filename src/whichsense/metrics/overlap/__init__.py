"""Overlap of texts: BLEU, ROUGE-L, BERTScore."""
