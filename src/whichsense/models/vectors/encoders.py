"""Encoders by name, as in an index's manifest and on the command line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from whichsense.errors import BadInput, did_you_mean
from whichsense.models.vectors.minilm import MiniLM
from whichsense.models.vectors.static import WEIGHTS, Static
from whichsense.protocols import Encoder

DEFAULT = "static"


def load_encoder(name: str) -> Encoder:
    """The encoder of this name: `static`, `minilm`, a model folder, or a name on the hub. Weights load on first use.

    With `static+minilm`, `static` encodes passages and MiniLM encodes questions.

    >>> load_encoder("static").name
    'static-1'
    >>> load_encoder("minlm")
    Traceback (most recent call last):
    ...
    whichsense.errors.BadInput: No encoder named 'minlm'. Did you mean 'minilm'?
    """
    if name in (DEFAULT, WEIGHTS.stem):
        return Static()
    if name == "static+minilm":
        return Static(questions=MiniLM())
    if name.endswith(WEIGHTS.suffix):
        return Static(Path(name).resolve())
    folder = Path(name).expanduser()
    if folder.is_dir():
        # An absolute path: an index must find it again from any working directory.
        place = str(folder.resolve())
        if (folder / "bert.json").is_file():
            from whichsense.models.bert.dual_encoder import DPR  # needs torch

            return DPR(place)
        return MiniLM(place)
    if name == "minilm" or "/" in name:
        return MiniLM(name)
    names = [DEFAULT, "minilm", "static+minilm"]
    raise BadInput(f"No encoder named '{name}'. {did_you_mean(name, names)}")


def estimate(encoder: Encoder, texts: Sequence[str], seconds: float = 3.0) -> float:
    """Passages a second, measured by encoding some of `texts` for about `seconds`. Loading is not counted."""
    if not texts:
        raise BadInput("A rate cannot be estimated without texts.")
    encoder.encode_passages(texts[:1])
    begun = time.perf_counter()
    done = 0
    size = 4
    while True:
        # Each batch is twice as large as the last: few calls for a fast encoder, few seconds for a slow one.
        batch = [texts[place % len(texts)] for place in range(done, done + size)]
        encoder.encode_passages(batch)
        done += size
        size *= 2
        passed = time.perf_counter() - begun
        if passed * 2 > seconds or done >= 8192:
            return done / max(passed, 1e-9)
