"""A model in use: texts in, texts out; questions batched by length within the memory that there is."""

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
from whichsense.models.seq2seq.codec import Codec, Form
from whichsense.models.seq2seq.inputs import Sequences

if TYPE_CHECKING:
    from whichsense.models.seq2seq.decoding import Found, Search
    from whichsense.models.seq2seq.network import Layers, Memory, Network

_CPU_TOKENS = 16_384
_ENCODED_AT_ONCE = 65_536  # tokens: enough to fill any GPU, little enough to leave the memory to keys and values


class Generator:
    """Loads on first use. On a GPU it works in bfloat16; `dtype` says otherwise."""

    def __init__(
        self, folder: str | Path, device: str = "", dtype: str = "", tokens: int = 0
    ) -> None:
        """`tokens`: of a batch; 0: as many as memory allows."""
        self.folder, self.device, self.dtype, self.tokens = (
            Path(folder),
            device,
            dtype,
            tokens,
        )
        self.task, self.form, self.options = checkpoint.describe(folder)

    @classmethod
    def of(
        cls, network: Network, codec: Codec, form: Form, tokens: int = 0
    ) -> Generator:
        """Over a network that is there, as in training."""
        self = cls.__new__(cls)
        self.folder, self.task, self.form, self.options = Path(), "", form, {}
        self.device, self.dtype, self.tokens = "", "", tokens
        self.__dict__["_parts"] = (network, codec)
        return self

    @cached_property
    def _parts(self) -> tuple[Network, Codec]:
        torch = require("torch", "train")
        from whichsense.models.seq2seq.causal import network_of

        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        codec = checkpoint.load_codec(self.folder, self.form)
        model = checkpoint.load_model(self.folder, codec)
        half = self.dtype == "bfloat16" or (
            not self.dtype and torch.device(device).type == "cuda"
        )
        return network_of(
            model.to(device, torch.bfloat16 if half else torch.float32)
        ).eval(), codec

    @property
    def network(self) -> Network:
        return self._parts[0]

    @property
    def codec(self) -> Codec:
        return self._parts[1]

    @cached_property
    def _layers(self) -> Layers:
        return self.network.layers(self.network.dtype)

    def generate(
        self,
        inputs: Sequence[Sequences],
        search: Search,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> list[list[Found]]:
        """The best outputs for each question's input, best first, in the order of the inputs.

        `prefixes`: tokens that an output must begin with. They are part of the output, as if the model had said them.
        """
        from whichsense.models.seq2seq.decoding import search as searched

        lead = self.codec.lead
        found: list[list[Found]] = [[] for _ in inputs]
        for places, memory in self._batches(inputs):
            begin = [
                [*lead, *(prefixes[place] if prefixes else ())] for place in places
            ]
            room = replace(
                search, shortest=search.shortest + len(lead) if search.shortest else 0
            )
            for place, outputs in zip(
                places,
                searched(self.network, self._layers, memory, room, begin),
                strict=True,
            ):
                found[place] = [
                    replace(one, tokens=one.tokens[len(lead) :]) for one in outputs
                ]
        return found

    def score(
        self, inputs: Sequence[Sequences], targets: Sequence[Sequence[list[int]]]
    ) -> list[list[float]]:
        """The summed log probability of each target (with its end) under its input, which is encoded once for all."""
        torch = require("torch", "train")
        found: list[list[float]] = [[] for _ in inputs]
        wanted = [place for place, several in enumerate(targets) if several]
        for some, memory in self._batches([inputs[place] for place in wanted]):
            places = [wanted[number] for number in some]
            with torch.inference_mode():
                for place, row in zip(
                    places,
                    self._scored(memory, [targets[p] for p in places]),
                    strict=True,
                ):
                    found[place] = row[: len(targets[place])]
        return found

    def _scored(
        self, memory: Memory, targets: Sequence[Sequence[list[int]]]
    ) -> list[list[float]]:
        """Targets of one question are hypotheses over one memory, as beams are."""
        torch = require("torch", "train")
        from whichsense.models.seq2seq.decoding import Stepper

        device = memory.keys[0].device
        most, longest = (
            max(map(len, targets)),
            max(len(one) for several in targets for one in several),
        )
        table = torch.full((len(targets), most, longest), -1, dtype=torch.int64)
        for row, several in enumerate(targets):
            for column, one in enumerate(several):
                table[row, column, : len(one)] = torch.tensor(one)
        table = table.flatten(0, 1).to(device)
        stepper = Stepper(self.network, self._layers, memory, most, longest + 1)
        tokens = torch.full_like(table[:, 0], self.network.signs.start)
        totals = torch.zeros(len(table), device=device)
        for place in range(longest):
            following = table[:, place]
            scores = stepper.step(tokens, place).gather(
                1, following.clamp(min=0)[:, None]
            )[:, 0]
            totals += scores.masked_fill(following < 0, 0.0)
            tokens = following.clamp(min=0)
        rows: list[list[float]] = totals.view(len(targets), most).tolist()
        return rows

    def _batches(
        self, inputs: Sequence[Sequences]
    ) -> Iterator[tuple[list[int], Memory]]:
        """Questions of about one length together, and what the decoder reads of each."""
        sizes = [sum(map(len, sequences)) for sequences in inputs]
        for places in planned(sizes, self.tokens or self._room()):
            check_limits()
            yield places, self._encoded([inputs[place] for place in places])

    def _encoded(self, inputs: Sequence[Sequences]) -> Memory:
        torch = require("torch", "train")
        from whichsense.models.seq2seq.ragged import Ragged

        sizes = [sum(map(len, sequences)) for sequences in inputs]
        device = self.network.model.device
        with torch.inference_mode():
            parts = []
            for some in _runs(sizes, _ENCODED_AT_ONCE):
                sequences = [one for place in some for one in inputs[place]]
                rows = moved(Ragged.of([len(one) for one in sequences]), device)
                parts.append(
                    self.network.encode(_on(device, sequences), rows, self._layers)
                )
            memory = parts[0] if len(parts) == 1 else torch.cat(parts)
            return self.network.remember(
                memory, moved(Ragged.of(sizes), device), self._layers
            )

    def _room(self) -> int:
        """Input tokens that a batch may have: keys and values of all layers are kept for each."""
        torch = require("torch", "train")
        device = self.network.model.device
        if device.type != "cuda":
            return _CPU_TOKENS
        each = self.network.token_bytes()
        free, _ = torch.cuda.mem_get_info(device)
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return max(1, int((free + kept) * 0.5) // each)


def _on(device: Any, sequences: Sequences) -> Any:
    """Token ids end to end, on the device; to a GPU without waiting for it."""
    torch = require("torch", "train")
    flat = np.fromiter(
        chain.from_iterable(sequences), np.int64, sum(map(len, sequences))
    )
    ids = torch.from_numpy(flat)
    return (
        ids.pin_memory().to(device, non_blocking=True)
        if device.type == "cuda"
        else ids.to(device)
    )


def moved(rows: Any, device: Any) -> Any:
    """Where its sequences lie, on the device."""
    return rows._replace(
        starts=rows.starts.to(device),
        place=rows.place.to(device),
        position=rows.position.to(device),
    )


def planned(sizes: Sequence[int], room: int) -> list[list[int]]:
    """Batches of about equally long items, none larger than `room` counted with padding, unless one item alone is.

    >>> planned([3, 9, 2, 8], room=18)
    [[1, 3], [0, 2]]
    """
    batches: list[list[int]] = []
    for place in sorted(range(len(sizes)), key=lambda one: -sizes[one]):
        # The first of a batch is its longest: every other one takes as much room.
        if batches and sizes[batches[-1][0]] * (len(batches[-1]) + 1) <= room:
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches


def _runs(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Neighbours together, up to `most` tokens."""
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
    """The generator behind a stage: one that is there, or a trained model's folder, which must fit the stage."""
    if isinstance(model, Generator):
        return model
    found = Generator(model, device=device)
    if found.task not in tasks:
        raise BadInput(
            f"'{model}' was trained as '{found.task}'; here a model for {' or '.join(tasks)} is needed."
        )
    return found
