"""The page: files that a browser gets, with no build step and nothing from elsewhere."""
