"""Tasks that train the compact model's writer, and its examples."""
