"""The compact model: an encoder that reads each (question, passage) pair once, and a writer.

`nets.py` has the networks in torch, `export.py` writes them out, `encoder.py` runs them without torch.
"""
