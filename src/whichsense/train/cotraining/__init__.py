"""Democratic co-training with weak supervision (AmbigQA, algorithm 1, appendix D).

Readers learn from AmbigNQ, then read questions with one known answer (NQ-open) with that answer as the beginning of
their output. Where a majority goes on to the same other answers, these join the known one; where nobody goes on, it
stays the only one. Both kinds join the training data of the next iteration; the rest is left out.
"""
