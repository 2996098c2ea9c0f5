"""The encoder's training step in few passes over memory: kernels of our own, and matrix products in 16 or 8 bits."""
