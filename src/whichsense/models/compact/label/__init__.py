"""The label of an answer: the words of the evidence that name its case."""
