"""Wikipedia dumps: articles, redirects and the senses of disambiguation pages."""
