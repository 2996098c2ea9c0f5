"""Long answers of the compact model: one paragraph over all readings, a citation on every sentence."""
