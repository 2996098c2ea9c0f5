"""Search by meaning: int8 vectors in clusters."""
