"""Sequence-to-sequence models: BART and T5, with all passages in one input or fused in the decoder.

Loaded only by those who ask for them: everything here needs the extra `train` (torch, transformers).
"""
