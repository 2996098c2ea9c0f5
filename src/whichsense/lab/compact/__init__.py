"""Training of the compact model. Ten recipes build on each other, and `whichsense train compact` runs them all:

    compact-teacher      a large encoder learns to rank and read lists of passages
    compact-reader       the small encoder learns the same, also from the teacher's soft labels
    compact-encoder      the same, quantization-aware
    compact-writer       the writer learns to restore questions and sentences from which words were taken
    compact-asker        that writer learns to ask, and writes synthetic questions for passages
    compact-asked        the encoder learns from the synthetic questions, too
    compact-topics       the encoder learns from topics whose gold answers are complete
    compact-verifier     a second late half of the encoder learns to ask rewrites again
    compact              the writer learns rewrites; the weights folder is exported, scorer and trust are fitted
    compact-label        layers over the encoder's first ones learn which words of the evidence name an answer's case

All learn from the same lists: questions of several datasets, each with passages of an index. The room has six parts:
`data` builds lists and batches, `encoder`, `writer`, `verifier` and `label` hold the tasks, `scorer` fits the scorer;
the trust is fitted in `verifier`.
"""
