"""The laboratory: data, metrics, evaluation and training. Nothing that answers imports it."""
