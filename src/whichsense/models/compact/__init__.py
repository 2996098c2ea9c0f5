"""The compact model: an encoder that reads each (question, passage) pair once, and a writer (`writer/`).

`net.py` trains the encoder in torch, `export.py` writes both out, `runtime.py` runs it without torch.
"""
