"""Answer candidates from the encoder's spans."""
