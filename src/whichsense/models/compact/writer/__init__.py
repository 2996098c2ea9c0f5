"""The compact model's writer: a small prefix language model. It reads a prompt (question, answer, windows of evidence)
both ways, then writes a rewritten question or an answer, token by token.

`net.py` trains it in torch, `graph.py` writes it down as ONNX, `runtime.py` runs it without torch.
"""
