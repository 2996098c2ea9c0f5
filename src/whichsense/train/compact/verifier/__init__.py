"""Training of the compact model's verifier, which asks a rewrite again, and of the trust in what it says."""
