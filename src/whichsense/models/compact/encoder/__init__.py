"""The compact model's encoder: tokens, network, ONNX graph, runtime."""
