"""Fitting of the compact model's scorer."""
