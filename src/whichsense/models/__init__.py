"""Models: the only home of onnxruntime and torch. Import the part you need; none is loaded for another."""
