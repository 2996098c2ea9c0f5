"""What a service keeps: API keys, traces of answered questions, and what its workers share while it runs."""
