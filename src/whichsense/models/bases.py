"""Base models of transformers, from the hub or a folder, with errors that say what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from whichsense.errors import BadInput, require


def load_tokenizer(base: str | Path) -> Any:
    """A fast tokenizer: offsets are needed to point at answers."""
    transformers = require("transformers", "train")
    with _Told(base, "tokenizer"):
        return transformers.AutoTokenizer.from_pretrained(str(base), use_fast=True)


def load_base(base: str | Path, kind: str = "AutoModel", **options: Any) -> Any:
    """A model with the weights of its checkpoint, in float32; `kind` is the class of transformers that loads it."""
    transformers = require("transformers", "train")
    torch = require("torch", "train")
    quietly(transformers)
    with _Told(base, "model"):
        return getattr(transformers, kind).from_pretrained(str(base), dtype=torch.float32, **options)


def load_config(base: str | Path) -> Any:
    """What kind of model it is, and its sizes."""
    transformers = require("transformers", "train")
    with _Told(base, "config"):
        return transformers.AutoConfig.from_pretrained(str(base))


def quietly(transformers: Any) -> None:
    """No bars over the loading of a file: the command has its own."""
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()


class _Told:
    """Turns what transformers raises about a missing or broken checkpoint into one line."""

    def __init__(self, base: str | Path, what: str) -> None:
        self.base, self.what = base, what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError | ValueError):
            why = str(error).strip().splitlines()[0].rstrip(".")
            raise BadInput(
                f"The {self.what} of '{self.base}' cannot be loaded: {why}. "
                "Give a folder that transformers saved, or a name on the hub (which needs the network once)."
            ) from None
