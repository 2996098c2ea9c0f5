"""The stages of the pipeline. Each file holds every implementation of one verb, side by side."""
