"""Base models by name: where a checkpoint comes from, and how it is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from whichsense.errors import BadInput, require


def load_tokenizer(base: str | Path) -> Any:
    """Return a fast tokenizer: only these give the offsets of tokens."""
    transformers = require("transformers", "train")
    with _LoadErrors(base, "tokenizer"):
        return transformers.AutoTokenizer.from_pretrained(**_place(base), use_fast=True)


def load_base(base: str | Path, kind: str = "AutoModel", **options: Any) -> Any:
    """Return a model with the weights of its checkpoint, in float32. `kind` is the class of transformers that loads
    it.
    """
    transformers = require("transformers", "train")
    torch = require("torch", "train")
    quietly(transformers)
    with _LoadErrors(base, "model"):
        model_class = getattr(transformers, kind)
        model = model_class.from_pretrained(**_place(base), dtype=torch.float32, **options)
        return _dense(model) if _is_gguf(base) else model


def load_config(base: str | Path) -> Any:
    """Return the configuration of a model: its kind and its sizes."""
    transformers = require("transformers", "train")
    with _LoadErrors(base, "config"):
        return transformers.AutoConfig.from_pretrained(**_place(base))


def _is_gguf(base: str | Path) -> bool:
    """Tell whether a base is a file of llama.cpp."""
    return Path(base).suffix.lower() == ".gguf"


def _place(base: str | Path) -> dict[str, str]:
    """Return the arguments by which transformers finds a base."""
    if not _is_gguf(base):
        return {"pretrained_model_name_or_path": str(base)}
    require("gguf", "gguf")
    return {"pretrained_model_name_or_path": str(Path(base).parent), "gguf_file": Path(base).name}


def _dense(model: Any) -> Any:
    """Return a copy of a .gguf file's model as a plain one: transformers cannot save a model marked as quantized."""
    torch = require("torch", "train")
    config = model.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.random.fork_rng():
        copy = type(model)(config)
    copy.load_state_dict(model.state_dict())
    copy.tie_weights()
    return copy.to(torch.float32)


def quietly(transformers: Any) -> None:
    """Disable the progress bars and warnings of transformers: a command has its own."""
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()


class _LoadErrors:
    """Turns the errors of transformers about a missing or broken checkpoint into one line."""

    def __init__(self, base: str | Path, what: str) -> None:
        self.base = base
        self.what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError | ValueError):
            why = str(error).strip().splitlines()[0].rstrip(".")
            raise BadInput(
                f"The {self.what} of '{self.base}' cannot be loaded: {why}. "
                "Give a folder that transformers saved, a .gguf file, or a name on the hub (which needs the network "
                "once)."
            ) from None
