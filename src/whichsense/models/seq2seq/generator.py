"""A trained sequence-to-sequence model: its folder, and what it writes for a prompt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from whichsense.config import from_table
from whichsense.errors import BadInput, require
from whichsense.files import read_json, write_atomically
from whichsense.jobs.limits import check_limits
from whichsense.models.bases import load_base, load_config, load_tokenizer
from whichsense.models.seq2seq.formats import SEPARATOR, Codec, InputForm, TokenSequences

if TYPE_CHECKING:
    from whichsense.models.seq2seq.decoding import Output, Search
    from whichsense.models.seq2seq.network import Network
    from whichsense.models.seq2seq.ragged import EncodedInputs, LayerWeights


# Loads BART, T5 and decoder-only checkpoints from the hub or a folder; saves and describes trained
# models.

_ABOUT = "seq2seq.json"


def load_codec(source: str | Path, form: InputForm) -> Codec:
    """Return the tokenizer of a checkpoint, with the separator among its tokens."""
    tokenizer = load_tokenizer(source)
    config = load_config(source)
    kind = _kind(config, source)
    if kind == "causal" and form.fusion:
        raise BadInput(
            f"'{source}' is a '{config.model_type}' model, which reads one input: set form.fusion = false."
        )
    if tokenizer.convert_tokens_to_ids(SEPARATOR) in (None, tokenizer.unk_token_id):
        tokenizer.add_special_tokens({"additional_special_tokens": [SEPARATOR]})
    _check_room(config, form, source)
    return Codec(tokenizer, kind, form.lowercase)


def _kind(config: Any, source: str | Path) -> Literal["bart", "t5", "causal"]:
    if config.model_type in ("bart", "t5"):
        kind: Literal["bart", "t5"] = config.model_type
        return kind
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    # Encoders are in both lists, since transformers can turn them into decoders.
    causal = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.keys()
    decoders = causal - MODEL_FOR_MASKED_LM_MAPPING_NAMES.keys()
    is_pair = getattr(config, "is_encoder_decoder", False)
    if config.model_type in decoders and not is_pair:
        return "causal"
    raise BadInput(
        f"'{source}' is a '{config.model_type}' model. Take a BART or T5 checkpoint, or a decoder-only one (Llama, …)."
    )


def load_model(source: str | Path, codec: Codec) -> Any:
    """Return the weights of a checkpoint, by hub name or folder, with room for the separator."""
    if codec.kind == "causal":
        return _load_causal(source, codec)
    model = load_base(source, "AutoModelForSeq2SeqLM")
    if not getattr(model.config, "scale_decoder_outputs", True):
        # T5 1.1 has an output matrix of its own. transformers 5 would tie it to the embedding when it resizes or saves
        # the model, unless the config forbids it.
        model.config.tie_word_embeddings = False
    if len(codec.tokenizer) > model.config.vocab_size:
        model.resize_token_embeddings(len(codec.tokenizer), mean_resizing=False)
    return model


def _load_causal(source: str | Path, codec: Codec) -> Any:
    model = load_base(source, "AutoModelForCausalLM", attn_implementation="sdpa")
    if len(codec.tokenizer) > model.config.vocab_size:
        # The product over the vocabulary is much faster with a multiple of 64 rows.
        model.resize_token_embeddings(
            len(codec.tokenizer), pad_to_multiple_of=64, mean_resizing=False
        )
    # Some checkpoints have several end tokens, or no padding token. Outputs here have one end.
    model.config.eos_token_id = codec.end
    if model.config.pad_token_id is None:
        model.config.pad_token_id = codec.end
    return model


def _check_room(config: Any, form: InputForm, source: str | Path) -> None:
    """Reject a form with longer sequences than the model has positions."""
    room = getattr(config, "max_position_embeddings", None)
    longest = form.input_tokens
    if form.fusion:
        # Start, two ends and the separator between title and text stand beside question and passage.
        longest = form.question_tokens + form.passage_tokens + 4
    if not config.is_encoder_decoder:
        longest += form.output_tokens + 1
    if room is not None and max(longest, form.output_tokens + 2) > room:
        raise BadInput(
            f"'{source}' has positions for {room} tokens, and the recipe's form asks for {longest} in and "
            f"{form.output_tokens} out. Lower the form's token counts."
        )


def save(
    folder: Path,
    model: Any,
    codec: Codec,
    form: InputForm,
    *,
    task: str,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write weights and tokenizer in transformers' layout, and beside them the task, form and options."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    codec.tokenizer.save_pretrained(folder)
    about = {"task": task, "form": asdict(form), "options": dict(options or {})}
    write_atomically(folder / _ABOUT, json.dumps(about, indent=2) + "\n")


def describe(folder: str | Path) -> tuple[str, InputForm, dict[str, Any]]:
    """Return the task, form and options of a saved model."""
    path = Path(folder) / _ABOUT
    if not path.is_file():
        raise BadInput(
            f"'{folder}' holds no trained sequence-to-sequence model: there is no {_ABOUT}. Train one first."
        )
    about = read_json(path)
    form = from_table(InputForm, about["form"], str(path))
    return str(about["task"]), form, dict(about.get("options", {}))


# Generation and scoring with a trained model. Questions are batched by length, within the free
# memory.

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
        self.task, self.form, self.options = describe(folder)

    @classmethod
    def of(cls, network: Network, codec: Codec, form: InputForm, tokens: int = 0) -> Generator:
        """Make a generator over a loaded network, as in training."""
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
        from whichsense.models.seq2seq.network import network_of

        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        codec = load_codec(self.folder, self.form)
        model = load_model(self.folder, codec)
        default = "bfloat16" if torch.device(device).type == "cuda" else "float32"
        is_half = (self.dtype or default) == "bfloat16"
        dtype = torch.bfloat16 if is_half else torch.float32
        return network_of(model.to(device, dtype)).eval(), codec

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
        """Return the best outputs for each question's input, best first, in the order of the inputs.

        `prefixes` are tokens that an output must begin with. They are part of the output.
        """
        from whichsense.models.seq2seq.decoding import run_search

        lead = self.codec.lead
        if search.shortest:
            search = replace(search, shortest=search.shortest + len(lead))
        outputs: list[list[Output]] = [[] for _ in inputs]
        for places, memory in self._batches(inputs):
            begins = [[*lead, *(prefixes[place] if prefixes else ())] for place in places]
            batch = run_search(self.network, self._layers, memory, search, begins)
            for place, some in zip(places, batch, strict=True):
                for output in some:
                    own = output.tokens[len(lead) :]
                    outputs[place].append(replace(output, tokens=own))
        return outputs

    def score(
        self, inputs: Sequence[TokenSequences], targets: Sequence[Sequence[list[int]]]
    ) -> list[list[float]]:
        """Return the summed log probability of each target (with its end), given its input, which is encoded once."""
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
        """Return scores (questions × most targets). The targets of a question share its memory, as beams do."""
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
            own = stepper.step(tokens, place).gather(1, following[:, None])[:, 0]
            totals += own.masked_fill(is_padding, 0.0)
            tokens = following
        rows: list[list[float]] = totals.view(len(targets), most).tolist()
        return rows

    def _batches(
        self, inputs: Sequence[TokenSequences]
    ) -> Iterator[tuple[list[int], EncodedInputs]]:
        """Yield batches of questions of similar length: their numbers, and their encoded inputs."""
        sizes = [sum(map(len, sequences)) for sequences in inputs]
        for places in plan_batches(sizes, self.tokens or self._room()):
            check_limits()
            yield places, self._encode([inputs[place] for place in places])

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
        """Return the most input tokens of a batch: keys and values of all layers are stored for each."""
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
    """Return token ids end to end, on the device; to a GPU without waiting for it."""
    torch = require("torch", "train")
    count = sum(map(len, sequences))
    ids = torch.from_numpy(np.fromiter(chain.from_iterable(sequences), np.int64, count))
    if device.type == "cuda":
        return ids.pin_memory().to(device, non_blocking=True)
    return ids.to(device)


def plan_batches(sizes: Sequence[int], room: int) -> list[list[int]]:
    """Return batches of items of similar size, each of at most `room` with padding, unless one item alone is larger.

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
    """Return the generator of a stage: a loaded one, or the folder of a model that was trained for one of the tasks."""
    if isinstance(model, Generator):
        return model
    generator = Generator(model, device=device)
    if generator.task not in tasks:
        raise BadInput(
            f"'{model}' was trained as '{generator.task}'; here a model for {' or '.join(tasks)} is needed."
        )
    return generator
