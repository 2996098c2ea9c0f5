"""Questions and answers as statements, by rules of English."""
