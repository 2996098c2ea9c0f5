"""Language models behind any OpenAI-compatible endpoint: the client, its limits and cache, how each stage thinks."""
