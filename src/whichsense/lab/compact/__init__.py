"""Training of the compact model. Seven recipes build on each other; `whichsense train compact` runs them. Then others:

    compact-teacher      a large encoder learns to rank and read lists of passages
    compact-reader       the small encoder learns the same, also from the teacher's soft labels
    compact-encoder      the same, quantization-aware
    compact-writer       the writer learns to restore questions and sentences from which words were taken
    compact-topics       the encoder learns from topics whose gold answers are complete
    compact-verifier     a second late half of the encoder learns to ask rewrites again
    compact              the writer learns rewrites; the weights folder is exported, scorer and trust are fitted
    compact-tag          an encoder of its own learns to mark every answer, and the words that name its case
    compact-support      adapters of the verifier learn which sentences a passage supports

The seven learn from the same lists: questions of several datasets, each with passages of an index. `questions`, `lists`
and `marked_answers` have the data, `…_task` the tasks; `scorer_fitting` and `trust_fitting` fit the linear models.
"""
