"""Training the compact model. Seven recipes build on each other, and `whichsense train compact` runs them all:

    compact-teacher      a large encoder learns to rank and read lists of passages
    compact-reader       the small encoder learns the same, and what the teacher says
    compact-encoder      the same with the arithmetic of the int8 model
    compact-writer       the writer learns to restore questions and sentences from which words were taken
    compact-asker        that writer learns to ask, and makes questions for passages
    compact-asked        the encoder learns on, from those questions too
    compact              the writer learns rewrites; writes the weights folder, and fits the scorer

All learn from the same lists (`lists.py`): questions of several datasets, each with passages of an index.
"""
