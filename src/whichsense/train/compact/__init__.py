"""Training the compact model. Four recipes build on each other, and `whichsense train compact` runs them all:

    compact-teacher      a large encoder learns to rank and read lists of passages
    compact-reader       the small encoder learns the same, and what the teacher says
    compact-sentences    the decoder learns to put back what was taken out of sentences of the passages
    compact              everything together, with the arithmetic of the int8 model; writes the weights folder

and one more goes on from what they made, or from the model that is shipped:

    compact-rewriter     the decoder alone learns rewrites, also such as other models wrote

All learn from the same lists (`lists.py`): questions of several datasets, each with passages of an index.
"""
