"""Systems: a TOML file that names a provider or a model for each stage becomes a pipeline.

    name = "REFUEL"
    depth = 1000                     # passages that are retrieved
    keep = 100                       # passages that are left after reranking
    rounds = 5                       # round-trip prediction, at most so often
    [reranker]
    model = "runs/reranker-nq/model" # what it was trained as decides how it is used
    [reader]
    model = "runs/fid-reader/model"
    [disambiguator]
    model = "runs/fid-disambiguation/model"
    [verifier]
    model = "runs/verification/model"

Any stage may name a `provider` in place of a model, such as "compact", the embedded default. `provider` at the top is
the provider of every stage that the file does not name.
"""
