"""Tasks over sequence-to-sequence models."""
