"""Training steps of the sequence-to-sequence networks in few kernels: Triton on a GPU, PyTorch as the yardstick."""
