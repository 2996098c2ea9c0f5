"""Text tools: words, sentences, dates, answers that mean the same, spans, stemming, assignment."""
