"""The training loop. It knows nothing of questions or passages."""
