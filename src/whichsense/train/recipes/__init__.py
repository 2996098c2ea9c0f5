"""Recipes: TOML files that name a task, its options and the settings of the loop."""
