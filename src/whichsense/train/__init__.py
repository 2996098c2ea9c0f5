"""Training: one loop for every model, and a task for each of them.

A task is any object with the verbs of `whichsense.train.loop.run.Task`; there is nothing to inherit or register:

    class Fit:
        metric, higher_is_better = "accuracy", True        # the best model is chosen by this number of evaluate()

        def build(self) -> nn.Module: ...                  # the model to start from; random weights follow the seed
        def batches(self, epoch, seed): ...                # decided by epoch and seed alone; best a Sequence:
                                                           #   Lazy(shuffled(len(items), 16, epoch, seed), self.collate)
        def loss(self, model, batch): ...                  # a mean; or (mean, {"span": 0.3, …}) to see parts in the log
        def evaluate(self, model): ...                     # {"accuracy": 0.9, …}; eval mode, no gradients
        def save(self, model, folder): ...                 # as it is loaded later: weights, tokenizer, settings
        def data(self): ...                                # paths whose checksums the run records; may be ()

    trained = train(Fit(), Settings(epochs=3, learning_rate=1e-4), "runs/fit")     # trained.model: the best one

The loop brings the rest: AdamW and its schedule, accumulation, bf16, several GPUs, evaluation, the best model,
checkpoints, exact resume, logs, early stopping, Ctrl-C. Three rules keep resuming exact, to the last bit on a CPU:

- `batches` draws from a generator of its own (`random.Random(f"{seed}/{epoch}")`), never from the global ones: batches
  are made in a thread or in other processes, ahead of need. It must not change `self`.
- `loss` may use torch's random numbers (dropout): they are seeded anew at every step, by seed, step and process.
- What training changes lives in the model's `state_dict`, nowhere else.

To train it from a recipe, put the task into a module of `whichsense.train` that has `Options` (a frozen dataclass: the
recipe's tables other than `[train]`) and `make(options) -> Task`, and name it in `whichsense.train.catalog`.
"""

from whichsense.errors import require

require(
    "torch", "train"
)  # every module here imports it: said once, with the way to get it
