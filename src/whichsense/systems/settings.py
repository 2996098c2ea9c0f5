"""What a system's file says, and what a provider's name stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from whichsense.config import from_table, load_as
from whichsense.errors import BadConfig
from whichsense.files import sha256
from whichsense.models.llm.settings import LLMSettings
from whichsense.protocols import Searchable
from whichsense.providers import COMPACT, LLM
from whichsense.stages import (
    clarify,
    detect,
    disambiguate,
    read,
    rerank,
    summarize,
    verify,
)
from whichsense.stages.clarify import ClarifierSettings
from whichsense.stages.detect import DetectorSettings
from whichsense.stages.disambiguate import DisambiguatorSettings
from whichsense.stages.read import ReaderSettings
from whichsense.stages.rerank import RerankerSettings
from whichsense.stages.summarize import SummarizerSettings
from whichsense.stages.verify import VerifierSettings
from whichsense.types import Method

# What each stage is built from, in the order of the pipeline: settings, and provider → factory.
STAGES: dict[str, tuple[Any, Mapping[str, Any]]] = {
    "reranker": (RerankerSettings, rerank.PROVIDERS),
    "reader": (ReaderSettings, read.PROVIDERS),
    "detector": (DetectorSettings, detect.PROVIDERS),
    "disambiguator": (DisambiguatorSettings, disambiguate.PROVIDERS),
    "verifier": (VerifierSettings, verify.PROVIDERS),
    "clarifier": (ClarifierSettings, clarify.PROVIDERS),
    "summarizer": (SummarizerSettings, summarize.PROVIDERS),
}
# The stages of a whole system that is named by a provider, with the provider of each.
_WHOLE_SYSTEMS = {
    COMPACT: dict.fromkeys(
        ("reranker", "reader", "disambiguator", "verifier", "clarifier", "summarizer"),
        COMPACT,
    ),
    # Evidence is found by the embedded model; everything else is thinking.
    LLM: {
        "reranker": COMPACT,
        "reader": LLM,
        "detector": LLM,
        "disambiguator": LLM,
        "verifier": LLM,
        "clarifier": LLM,
        "summarizer": LLM,
    },
}
_ABOUT = {
    COMPACT: "The embedded default.",
    LLM: "A language model thinks over evidence that the embedded default finds.",
}
# Passages that are retrieved and read, where the file does not say.
_SIZES = {COMPACT: (40, 20)}
_USUAL_SIZES = (100, 20)


@dataclass(frozen=True, slots=True)
class SystemSettings:
    """Everything that a system's file may say."""

    name: str = ""
    about: str = ""
    provider: str = ""
    """For every stage that the file does not name."""
    method: Method | None = None
    depth: int = 0
    """Passages that are retrieved; 0: 100, or 40 for the embedded default."""
    keep: int = 0
    """Passages that are read; 0: 20."""
    rounds: int = 0
    device: str = ""
    weights: str = ""
    """The embedded default's: a weights folder, as `whichsense train compact` leaves it; empty: those that ship."""
    reranker: RerankerSettings | None = None
    reader: ReaderSettings | None = None
    disambiguator: DisambiguatorSettings | None = None
    verifier: VerifierSettings | None = None
    detector: DetectorSettings | None = None
    clarifier: ClarifierSettings | None = None
    summarizer: SummarizerSettings | None = None
    rewriter: DisambiguatorSettings | None = None
    """With `detector`: AmbigQA's DISAMBIG-FIRST, which rewrites before it reads."""
    llm: LLMSettings | None = None
    """How the language model of stages with the provider "llm" is reached."""

    def __post_init__(self) -> None:
        if self.provider and self.provider not in _WHOLE_SYSTEMS:
            known = ", ".join(_WHOLE_SYSTEMS)
            raise BadConfig(
                f"'{self.provider}' has no system of its own (there are: {known}). "
                "Name the model of each stage in a file: --system FILE.toml"
            )


def load_settings(system: str | Path) -> SystemSettings:
    """What a system's file says; a provider's name stands for all its stages."""
    path = Path(system)
    is_file = path.suffix == ".toml" or path.is_file()
    if str(system) in _WHOLE_SYSTEMS or not is_file:
        name = str(system)
        table = {"name": name, "provider": name, "about": _ABOUT.get(name, "")}
        return from_table(SystemSettings, table)
    settings = load_as(SystemSettings, system)
    return settings if settings.name else replace(settings, name=path.stem)


def complete(settings: SystemSettings) -> SystemSettings:
    """The settings with nothing left open: a provider for every stage that has one, and sizes."""
    return _with_sizes(_with_provider(settings))


def _with_provider(settings: SystemSettings) -> SystemSettings:
    """The provider of the whole system, written into each of its stages that the file does not name."""
    named = {}
    whole = _WHOLE_SYSTEMS.get(settings.provider, {})
    for kind, provider in whole.items():
        if getattr(settings, kind) is None:
            record, _ = STAGES[kind]
            named[kind] = record(provider=provider)
    return replace(settings, **named)


def _with_sizes(settings: SystemSettings) -> SystemSettings:
    """Depth and keep as the file says, or as they suit the provider of a stage."""
    depth, keep = _USUAL_SIZES
    if _asks_for_compact(settings):
        depth, keep = _SIZES[COMPACT]
    return replace(settings, depth=settings.depth or depth, keep=settings.keep or keep)


def _asks_for_compact(settings: SystemSettings) -> bool:
    return asks_for(settings, COMPACT) or asks_for(settings, "documents")


def asks_for(settings: SystemSettings, provider: str) -> bool:
    """Whether a stage of complete settings has this provider."""
    for kind in STAGES:
        stage = getattr(settings, kind)
        if stage is not None and stage.provider == provider:
            return True
    return False


def describe(settings: SystemSettings, index: Searchable) -> dict[str, Any]:
    """What decides a system's answers: its settings, which compact model it asks for, which training run each other
    model is from, and the index."""
    settings = complete(settings)
    described = asdict(settings)
    del described["about"]  # prose: it decides nothing
    weights = described.pop("weights")
    if _asks_for_compact(settings):
        from whichsense.models.compact.encoder.runtime import WEIGHTS

        described["compact"] = weights or WEIGHTS.name
    models = [weights] if weights else []
    for stage in described.values():
        if isinstance(stage, dict):
            models += [stage.get("model", ""), *stage.get("models", ())]
    return described | {"models": training_runs(models)} | dict(index.describe())


def training_runs(models: Iterable[str]) -> dict[str, str]:
    """Of each model folder that a training run wrote, which run that was."""
    runs = {}
    for model in models:
        chosen = Path(model) / "selected.json"
        if model and chosen.is_file():
            runs[model] = sha256(chosen)
    return runs
