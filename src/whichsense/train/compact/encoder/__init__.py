"""Training of the compact model's encoder and its teacher."""
