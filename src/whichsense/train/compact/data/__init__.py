"""Training data of the compact model: questions, lists of passages, topics."""
