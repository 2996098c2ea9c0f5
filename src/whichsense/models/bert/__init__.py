"""Models over any BERT-like encoder: dual encoder, reranker, joint reranker, extractive reader, ambiguity detector.

Loaded only by those who ask for them: everything here needs the extra `train` (torch, transformers).
"""
