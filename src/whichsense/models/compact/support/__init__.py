"""The support judge: does a passage say what a sentence says?"""
