"""Generation and scoring with a trained model. Questions are batched by length, within the free memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whichsense.errors import BadInput, require
from whichsense.jobs.limits import check_limits
from whichsense.models.seq2seq import checkpoint
from whichsense.models.seq2seq.codec import Codec, InputForm
from whichsense.models.seq2seq.inputs import TokenSequences

if TYPE_CHECKING:
    from whichsense.models.seq2seq.batch import EncodedInputs, LayerWeights
    from whichsense.models.seq2seq.decoding import Output, Search
    from whichsense.models.seq2seq.network import Network

_CPU_TOKENS = 16_384
_ENCODED_AT_ONCE = (
    65_536  # tokens: enough to fill any GPU, and the memory is left to keys and values
)


class Generator:
    """A trained model. It loads on first use, on a GPU in bfloat16 unless `dtype` says otherwise."""

    def __init__(
        self, folder: str | Path, device: str = "", dtype: str = "", tokens: int = 0
    ) -> None:
        """`tokens` is the size of a batch; 0: as many as memory allows."""
        self.folder = Path(folder)
        self.device = device
        self.dtype = dtype
        self.tokens = tokens
        self.task, self.form, self.options = checkpoint.describe(folder)

    @classmethod
    def of(
        cls, network: Network, codec: Codec, form: InputForm, tokens: int = 0
    ) -> Generator:
        """A generator over a loaded network, as in training."""
        self = cls.__new__(cls)
        self.folder = Path()
        self.task = ""
        self.form = form
        self.options = {}
        self.device = ""
        self.dtype = ""
        self.tokens = tokens
        self.__dict__["_parts"] = (network, codec)
        return self

    @cached_property
    def _parts(self) -> tuple[Network, Codec]:
        torch = require("torch", "train")
        from whichsense.models.seq2seq.causal import network_of

        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        codec = checkpoint.load_codec(self.folder, self.form)
        model = checkpoint.load_model(self.folder, codec)
        default = "bfloat16" if torch.device(device).type == "cuda" else "float32"
        is_half = (self.dtype or default) == "bfloat16"
        dtype = torch.bfloat16 if is_half else torch.float32
        network = network_of(model.to(device, dtype))
        return network.eval(), codec

    @property
    def network(self) -> Network:
        return self._parts[0]

    @property
    def codec(self) -> Codec:
        return self._parts[1]

    @cached_property
    def _layers(self) -> LayerWeights:
        return self.network.layers(self.network.dtype)

    def generate(
        self,
        inputs: Sequence[TokenSequences],
        search: Search,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> list[list[Output]]:
        """The best outputs for each question's input, best first, in the order of the inputs.

        `prefixes` are tokens that an output must begin with. They are part of the output.
        """
        from whichsense.models.seq2seq.decoding import run_search

        lead = self.codec.lead
        if search.shortest:
            search = replace(search, shortest=search.shortest + len(lead))
        outputs: list[list[Output]] = [[] for _ in inputs]
        for places, memory in self._batches(inputs):
            begins = []
            for place in places:
                prefix = prefixes[place] if prefixes else ()
                begins.append([*lead, *prefix])
            batch = run_search(self.network, self._layers, memory, search, begins)
            for place, some in zip(places, batch, strict=True):
                for output in some:
                    own = output.tokens[len(lead) :]
                    outputs[place].append(replace(output, tokens=own))
        return outputs

    def score(
        self, inputs: Sequence[TokenSequences], targets: Sequence[Sequence[list[int]]]
    ) -> list[list[float]]:
        """The summed log probability of each target (with its end), given its input, which is encoded once."""
        torch = require("torch", "train")
        scores: list[list[float]] = [[] for _ in inputs]
        # Inputs without a target are not encoded.
        wanted = []
        wanted_inputs = []
        for place, several in enumerate(targets):
            if several:
                wanted.append(place)
                wanted_inputs.append(inputs[place])
        for some, memory in self._batches(wanted_inputs):
            places = []
            own_targets = []
            for number in some:
                place = wanted[number]
                places.append(place)
                own_targets.append(targets[place])
            with torch.inference_mode():
                rows = self._score(memory, own_targets)
            for place, row in zip(places, rows, strict=True):
                scores[place] = row[: len(targets[place])]
        return scores

    def _score(
        self, memory: EncodedInputs, targets: Sequence[Sequence[list[int]]]
    ) -> list[list[float]]:
        """Scores (questions × most targets). The targets of a question share its memory, as beams do."""
        torch = require("torch", "train")
        from whichsense.models.seq2seq.decoding import Stepper

        device = memory.keys[0].device
        most = max(map(len, targets))
        longest = max(map(len, chain.from_iterable(targets)))
        # -1 is padding.
        table = torch.full((len(targets), most, longest), -1, dtype=torch.int64)
        for row, several in enumerate(targets):
            for column, target in enumerate(several):
                table[row, column, : len(target)] = torch.tensor(target)
        table = table.flatten(0, 1).to(device)
        stepper = Stepper(self.network, self._layers, memory, most, longest + 1)
        tokens = torch.full_like(table[:, 0], self.network.signs.start)
        totals = torch.zeros(len(table), device=device)
        for place in range(longest):
            is_padding = table[:, place] < 0
            following = table[:, place].clamp(min=0)
            scores = stepper.step(tokens, place)
            own = scores.gather(1, following[:, None])[:, 0]
            totals += own.masked_fill(is_padding, 0.0)
            tokens = following
        rows: list[list[float]] = totals.view(len(targets), most).tolist()
        return rows

    def _batches(
        self, inputs: Sequence[TokenSequences]
    ) -> Iterator[tuple[list[int], EncodedInputs]]:
        """Batches of questions of similar length: their numbers, and their encoded inputs."""
        sizes = [sum(map(len, sequences)) for sequences in inputs]
        for places in plan_batches(sizes, self.tokens or self._room()):
            check_limits()
            batch = [inputs[place] for place in places]
            yield places, self._encode(batch)

    def _encode(self, inputs: Sequence[TokenSequences]) -> EncodedInputs:
        torch = require("torch", "train")
        from whichsense.models.seq2seq.ragged import RaggedRows

        sizes = [sum(map(len, sequences)) for sequences in inputs]
        device = self.network.model.device
        with torch.inference_mode():
            parts = []
            for some in _runs(sizes, _ENCODED_AT_ONCE):
                sequences: TokenSequences = []
                for place in some:
                    sequences += inputs[place]
                rows = RaggedRows.of(list(map(len, sequences))).to(device)
                ids = _to_device(sequences, device)
                parts.append(self.network.encode(ids, rows, self._layers))
            memory = parts[0] if len(parts) == 1 else torch.cat(parts)
            questions = RaggedRows.of(sizes).to(device)
            return self.network.remember(memory, questions, self._layers)

    def _room(self) -> int:
        """The most input tokens of a batch: keys and values of all layers are stored for each."""
        torch = require("torch", "train")
        device = self.network.model.device
        if device.type != "cuda":
            return _CPU_TOKENS
        each = self.network.token_bytes()
        free, _ = torch.cuda.mem_get_info(device)
        # Memory that PyTorch holds but does not use.
        reserved = torch.cuda.memory_reserved(device)
        unused = reserved - torch.cuda.memory_allocated(device)
        return max(1, int((free + unused) * 0.5) // each)


def _to_device(sequences: TokenSequences, device: Any) -> Any:
    """Token ids end to end, on the device; to a GPU without waiting for it."""
    torch = require("torch", "train")
    count = sum(map(len, sequences))
    flat = np.fromiter(chain.from_iterable(sequences), np.int64, count)
    ids = torch.from_numpy(flat)
    if device.type == "cuda":
        return ids.pin_memory().to(device, non_blocking=True)
    return ids.to(device)


def plan_batches(sizes: Sequence[int], room: int) -> list[list[int]]:
    """Batches of items of similar size, each of at most `room` with padding, unless one item alone is larger.

    >>> plan_batches([3, 9, 2, 8], room=18)
    [[1, 3], [0, 2]]
    """
    batches: list[list[int]] = []
    for place in sorted(range(len(sizes)), key=lambda one: -sizes[one]):
        if batches:
            batch = batches[-1]
            # The first of a batch is its largest: every other one takes as much room.
            if sizes[batch[0]] * (len(batch) + 1) <= room:
                batch.append(place)
                continue
        batches.append([place])
    return batches


def _runs(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Split items into runs of neighbours of at most `most` tokens."""
    runs: list[list[int]] = []
    total = 0
    for place, size in enumerate(sizes):
        if not runs or total + size > most:
            runs.append([])
            total = 0
        runs[-1].append(place)
        total += size
    return runs


def load_generator(
    model: str | Path | Generator, tasks: Sequence[str], device: str = ""
) -> Generator:
    """The generator of a stage: a loaded one, or the folder of a model that was trained for one of the tasks."""
    if isinstance(model, Generator):
        return model
    generator = Generator(model, device=device)
    if generator.task not in tasks:
        raise BadInput(
            f"'{model}' was trained as '{generator.task}'; here a model for {' or '.join(tasks)} is needed."
        )
    return generator
