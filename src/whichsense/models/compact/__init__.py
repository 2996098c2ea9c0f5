"""The compact model: one small Fusion-in-Decoder that reads each (question, passage) pair once.

`net.py` trains it in torch, `export.py` writes it out, `runtime.py` runs it without torch.
"""
