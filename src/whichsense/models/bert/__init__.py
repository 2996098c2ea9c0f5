"""Models over any BERT-like encoder: dual encoder, reranker, joint reranker, extractive reader, ambiguity detector.

Loaded only by those who ask for them: everything here needs the extra `train` (torch, transformers).
"""

from whichsense.errors import require

require(
    "torch", "train"
)  # every module here imports it: said once, with the way to get it
