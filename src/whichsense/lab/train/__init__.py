"""Training: one loop for every model, and a task for each of them.

A task has the verbs of `whichsense.lab.train.task.Task`, for one kind of model and one kind of batch:

    class Fit(Task[nn.Linear, Tensor]):
        metric, higher_is_better = "accuracy", True        # this key of evaluate() selects the best model

        def build(self) -> nn.Linear: ...                  # the model to start from; random weights follow the seed
        def batches(self, epoch, seed): ...                # decided by epoch and seed alone; best a Sequence:
                                                           #   Lazy(shuffle_batches(len(items), 16, epoch, seed), …)
        def loss(self, model, batch): ...                  # a mean; or (mean, {"span": 0.3, …}) to log its parts
        def evaluate(self, model): ...                     # {"accuracy": 0.9, …}; eval mode, no gradients
        def save(self, model, folder): ...                 # as it is loaded later: weights, tokenizer, settings
        def data(self): ...                                # paths whose checksums the run records; may be ()

    trained = train(Fit(), Settings(epochs=3, learning_rate=1e-4), "runs/fit")     # trained.model: the best one

The loop brings the rest: AdamW and its schedule, accumulation, bf16, several GPUs, evaluation, the best model,
checkpoints, exact resume, logs, early stopping, Ctrl-C. Three rules keep resuming exact, to the last bit on a CPU:

- `batches` draws from a generator of its own (`random.Random(f"{seed}/{epoch}")`), never from the global ones: batches
  are made in a thread or in other processes, ahead of need. It must not change `self`.
- `loss` may use torch's random numbers (dropout): they are seeded anew at every step, by seed, step and process.
- What training changes is in the model's `state_dict` and nowhere else.

To train it from a recipe, put the task into a module of `whichsense.lab` with `SPEC = TaskSpec(FitOptions, Fit)`
(`FitOptions`: a frozen dataclass of the recipe's tables other than `[train]`), and name the module in
`whichsense.lab.train.recipes`.
"""

from whichsense.errors import require

# Every module here needs torch: fail once, with the way to install it.
require("torch", "train")
