"""Training of the compact model's writer."""
