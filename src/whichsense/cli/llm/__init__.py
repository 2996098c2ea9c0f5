"""The options of commands that may ask a language model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from whichsense.models.llm.settings import LLMSettings


def llm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --llm and --model to a command."""
    url = click.option(
        "--llm",
        "llm_url",
        metavar="URL",
        help="Let the language model of this OpenAI-compatible server do all thinking. Its key: WHICHSENSE_LLM_KEY.",
    )
    model = click.option(
        "--model",
        "llm_model",
        metavar="NAME",
        help="Its name on that server.  [default: WHICHSENSE_LLM_MODEL, or the only one there]",
    )
    return url(model(command))


def choose_system(
    system: Path | None, url: str | None, model: str | None
) -> tuple[str | Path, LLMSettings | None]:
    """The system that options ask for, and how its language model is reached where they say so. A system's file keeps
    its other settings of the language model."""
    if not url and not model:
        return system or "compact", None
    from whichsense.models.llm.settings import LLMSettings
    from whichsense.systems.settings import load_settings

    chosen = system or "llm"
    own = load_settings(chosen).llm or LLMSettings()
    return chosen, replace(own, url=url or own.url, model=model or own.model)
