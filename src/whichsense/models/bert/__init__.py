"""Models over any BERT-like encoder: dual encoder, reranker, extractive reader, ambiguity classifier.

Everything here needs the extra `train` (torch, transformers).
"""

from whichsense.errors import require

# All modules here import torch: this error names the extra once for all of them.
require("torch", "train")
