"""Readings for people: rewrites from the evidence, asked again by the verifier, and shown if they can be trusted."""
