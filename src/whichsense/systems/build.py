"""From settings to a system: one loop over the stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whichsense import sample
from whichsense.errors import BadConfig, BadInput, MissingStage
from whichsense.index import Index
from whichsense.pipeline import Pipeline
from whichsense.protocols import Answerer, Reranker, Searchable
from whichsense.providers import COMPACT, LLM, BuildContext, build_stage
from whichsense.stages import disambiguate, rerank
from whichsense.stages.baselines import DisambiguateFirst
from whichsense.stages.disambiguate import PromptCopy
from whichsense.stages.rerank import RerankerSettings
from whichsense.stages.retrieve import IndexRetriever
from whichsense.systems.settings import (
    STAGES,
    SystemSettings,
    asks_for,
    complete,
    load_settings,
)
from whichsense.types import FOR_PEOPLE, Method, Policy

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.models.llm.client import Endpoint
    from whichsense.models.llm.settings import LLMSettings

TrainedStages = dict[tuple[object, ...], Any]
"""Stages with a model of their own, by kind, settings and device: what several systems, or one system over several
generations of an index, have in common is loaded once."""

# A case holds about 30 MB while the compact model is at it.
_BATCHES = {COMPACT: 1, LLM: 1}


@dataclass(frozen=True, slots=True)
class System:
    """A system that is ready: what answers, and whether it rewrites questions at all."""

    answerer: Answerer
    settings: SystemSettings
    rewrites: bool = True

    @property
    def name(self) -> str:
        return self.settings.name


def load(
    system: str | Path = COMPACT,
    index: Searchable | str | Path | None = None,
    *,
    method: Method | None = None,
    depth: int | None = None,
    keep: int | None = None,
    threshold: float | None = None,
    policy: Policy = FOR_PEOPLE,
    threads: int = 2,
    weights: str | Path | None = None,
    model: Compact | None = None,
    llm: LLMSettings | None = None,
    trained: TrainedStages | None = None,
) -> Pipeline:
    """A pipeline over an index (without one, the embedded sample). Models load with the first question.

    `system` is a system's file, or a provider: "compact", the embedded default. `index` is open, a folder, or
    "handbook", the other embedded corpus. `depth` passages are searched for, the best `keep` are read. With a
    `threshold` every answer that is at least that probable is shown, and the best one; the others are kept apart as
    merely possible. `threads`, `weights` and `model` are the embedded model's: how many cores it uses,
    another weights folder, or a `Compact` that is already there. `llm` says how the language model of the system "llm"
    is reached, in place of what the system's file says. `trained` is filled, and shared between systems.
    """
    settings = load_settings(system)
    settings = replace(
        settings,
        method=method or settings.method,
        depth=_at_least_one("depth", depth, settings.depth),
        keep=_at_least_one("keep", keep, settings.keep),
        weights=str(weights or settings.weights),
        llm=llm or settings.llm,
    )
    _at_least_one("threads", threads, threads)
    built = build(
        settings,
        _open_index(index),
        policy.with_threshold(threshold),
        threads=threads,
        model=model,
        trained=trained,
    )
    if not isinstance(built.answerer, Pipeline):
        raise BadConfig(
            f"System '{built.name}' rewrites before it reads: it is not a pipeline. "
            "Run it over a dataset with whichsense predict."
        )
    return built.answerer


def _open_index(index: Searchable | str | Path | None) -> Searchable:
    """An index that is open, one in a folder, or an embedded one."""
    if index is None or isinstance(index, str | Path):
        return sample.open_index(index)
    return index


def _at_least_one(name: str, value: int | None, otherwise: int) -> int:
    if value is None:
        return otherwise
    if value < 1:
        raise BadInput(f"'{name}' must be at least 1; it is {value}.")
    return value


def build(
    settings: SystemSettings,
    index: Searchable,
    policy: Policy,
    *,
    threads: int = 2,
    model: Compact | None = None,
    trained: TrainedStages | None = None,
) -> System:
    """The system itself, over an index or saved hits. Models load when the first question comes."""
    settings = complete(settings)
    context = BuildContext(
        index,
        _compact_model(settings, index, threads, model),
        settings.method,
        settings.device,
        llm=_endpoint(settings),
    )
    where = f"System '{settings.name}'"
    if not (settings.reader or settings.clarifier or settings.summarizer):
        raise MissingStage(
            f'{where} needs a reader. Add to its file: [reader] model = "…", or provider = "compact".'
        )
    stages: dict[str, Any] = {}
    for kind, (_, providers) in STAGES.items():
        wanted = getattr(settings, kind)
        if wanted is not None:
            context = replace(context, reader=stages.get("reader"))
            stages[kind] = _stage(kind, wanted, providers, context, trained)
    retriever = IndexRetriever(index, settings.method)
    if settings.rewriter is not None:
        return _rewriting_first(settings, retriever, stages, context, policy)
    rewrites = "disambiguator" in stages
    stages.setdefault("disambiguator", PromptCopy())
    provider = settings.reader.provider if settings.reader else ""
    pipeline = Pipeline(
        retriever,
        **stages,
        depth=settings.depth,
        keep=settings.keep,
        rounds=settings.rounds,
        batch=_BATCHES.get(provider),
        policy=policy,
    )
    return System(pipeline, settings, rewrites)


def _stage(
    kind: str,
    settings: Any,
    providers: Mapping[str, Any],
    context: BuildContext,
    trained: TrainedStages | None,
) -> Any:
    """A stage; one whose model was trained is the same for equal settings."""
    if trained is None or settings.provider or not settings.model:
        return build_stage(kind, settings, providers, context)
    key = (kind, settings, context.device)
    if key not in trained:
        trained[key] = build_stage(kind, settings, providers, context)
    return trained[key]


def travelling(index: Searchable) -> Searchable | str | Path:
    """What stands for an index on its way to a worker elsewhere: where it is. Other evidence goes along whole."""
    return index.origin if isinstance(index, Index) else index


def built_answerer(
    settings: SystemSettings,
    index: Searchable | str | Path,
    policy: Policy,
    threads: int,
) -> Answerer:
    """A system over an index that is opened here: what a worker loads once."""
    return build(settings, _open_index(index), policy, threads=threads).answerer


def _rewriting_first(
    settings: SystemSettings,
    retriever: IndexRetriever,
    stages: Mapping[str, Any],
    context: BuildContext,
    policy: Policy,
) -> System:
    if "detector" not in stages or settings.rewriter is None:
        raise BadConfig(
            f"System '{settings.name}' rewrites first: that needs both [detector] and [rewriter]."
        )
    rewriter = build_stage(
        "rewriter", settings.rewriter, disambiguate.REWRITERS, context
    )
    first = DisambiguateFirst(
        stages["detector"],
        rewriter,
        retriever,
        stages["reader"],
        stages.get("reranker"),
        settings.depth,
        settings.keep,
        policy,
    )
    return System(first, settings)


def _endpoint(settings: SystemSettings) -> Endpoint | None:
    """The language model of a system that asks one. Nothing is sent before the first question."""
    if not asks_for(settings, LLM):
        return None
    from whichsense.models.llm.client import Endpoint
    from whichsense.models.llm.prompts import check_folder
    from whichsense.models.llm.settings import LLMSettings

    own = settings.llm or LLMSettings()
    check_folder(own.prompts)
    return Endpoint(own)


def _compact_model(
    settings: SystemSettings, index: Searchable, threads: int, model: Compact | None
) -> Compact:
    """The embedded model for this index; it is not loaded where no stage asks for it."""
    from whichsense.models.compact.encoder.runtime import WEIGHTS
    from whichsense.models.compact.scene import Compact

    own = model or Compact(Path(settings.weights or WEIGHTS), threads)
    return own.over(index.describe().get("passages"), settings.keep)


def build_reranker(model: str, index: Searchable, keep: int = 0) -> Reranker:
    """A reranker by itself: "compact", or the folder of a trained one."""
    settings = RerankerSettings(model=model)
    if model == COMPACT:
        settings = RerankerSettings(provider=COMPACT)
    system = complete(SystemSettings(reranker=settings, keep=keep))
    context = BuildContext(index, _compact_model(system, index, 2, None))
    return build_stage("reranker", settings, rerank.PROVIDERS, context)
