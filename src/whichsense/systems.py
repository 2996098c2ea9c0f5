"""Systems: a TOML file that names a provider or a model for each stage becomes a pipeline.

    name = "REFUEL"
    depth = 1000                     # passages that are retrieved
    keep = 100                       # passages that are left after reranking
    rounds = 5                       # round-trip prediction, at most so often
    [reranker]
    model = "runs/reranker-nq/model" # what it was trained as decides how it is used
    [reader]
    model = "runs/fid-reader/model"
    [disambiguator]
    model = "runs/fid-disambiguation/model"
    [verifier]
    model = "runs/verification/model"

Any stage may name a `provider` in place of a model, such as "compact", the embedded default. `provider` at the top is
the provider of every stage that the file does not name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whichsense import sample
from whichsense.config import from_table, load_as
from whichsense.errors import BadConfig, BadInput, MissingStage
from whichsense.files import sha256
from whichsense.index import Index
from whichsense.models.llm.prompts import LLMSettings
from whichsense.pipeline import Pipeline
from whichsense.protocols import Answerer, Reranker, Searchable
from whichsense.stages import clarify, detect, disambiguate, read, rerank, summarize, verify
from whichsense.stages.baselines import DisambiguateFirst
from whichsense.stages.clarify import ClarifierSettings
from whichsense.stages.detect import DetectorSettings
from whichsense.stages.disambiguate import DisambiguatorSettings, PromptCopy
from whichsense.stages.providers import COMPACT, LLM, BuildContext, build_stage
from whichsense.stages.read import ReaderSettings
from whichsense.stages.rerank import RerankerSettings
from whichsense.stages.retrieve import IndexRetriever
from whichsense.stages.summarize import SummarizerSettings
from whichsense.stages.verify import VerifierSettings
from whichsense.types import FOR_PEOPLE, Method, Policy

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.models.llm.endpoint import Endpoint


# What a system's file says, and what a provider's name stands for.

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
        ("reranker", "reader", "disambiguator", "verifier", "clarifier", "summarizer"), COMPACT
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
    """Return what a system's file says; a provider's name stands for all its stages."""
    path = Path(system)
    is_file = path.suffix == ".toml" or path.is_file()
    if str(system) in _WHOLE_SYSTEMS or not is_file:
        name = str(system)
        table = {"name": name, "provider": name, "about": _ABOUT.get(name, "")}
        return from_table(SystemSettings, table)
    settings = load_as(SystemSettings, system)
    return settings if settings.name else replace(settings, name=path.stem)


def complete(settings: SystemSettings) -> SystemSettings:
    """Return the settings with nothing left open: a provider for every stage that has one, and sizes."""
    return _with_sizes(_with_provider(settings))


def _with_provider(settings: SystemSettings) -> SystemSettings:
    """Return the provider of the whole system, written into each of its stages that the file does not name."""
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
    """Tell whether a stage of complete settings has this provider."""
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
        from whichsense.models.compact.encoder import WEIGHTS

        described["compact"] = weights or WEIGHTS.name
    models = [weights] if weights else []
    for stage in described.values():
        if isinstance(stage, dict):
            models += [stage.get("model", ""), *stage.get("models", ())]
    return described | {"models": training_runs(models)} | dict(index.describe())


def training_runs(models: Iterable[str]) -> dict[str, str]:
    """Return which run each model folder is from that a training run wrote."""
    runs = {}
    for model in models:
        chosen = Path(model) / "selected.json"
        if model and chosen.is_file():
            runs[model] = sha256(chosen)
    return runs


# From settings to a system: one loop over the stages.

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
    """Return a pipeline over an index (without one, the embedded sample). Models load with the first question.

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
    """Return an index that is open, one in a folder, or an embedded one."""
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
    """Return the system itself, over an index or saved hits. Models load when the first question comes."""
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
    """Return a stage; one whose model was trained is the same for equal settings."""
    if trained is None or settings.provider or not settings.model:
        return build_stage(kind, settings, providers, context)
    key = (kind, settings, context.device)
    if key not in trained:
        trained[key] = build_stage(kind, settings, providers, context)
    return trained[key]


def travelling(index: Searchable) -> Searchable | str | Path:
    """Return what stands for an index on its way to a worker elsewhere: where it is. Other evidence goes whole."""
    return index.origin if isinstance(index, Index) else index


def built_answerer(
    settings: SystemSettings, index: Searchable | str | Path, policy: Policy, threads: int
) -> Answerer:
    """Return a system over an index that is opened here: what a worker loads once."""
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
    rewriter = build_stage("rewriter", settings.rewriter, disambiguate.REWRITERS, context)
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
    """Return the language model of a system that asks one. Nothing is sent before the first question."""
    if not asks_for(settings, LLM):
        return None
    from whichsense.models.llm.endpoint import Endpoint
    from whichsense.models.llm.prompts import LLMSettings, check_folder

    own = settings.llm or LLMSettings()
    check_folder(own.prompts)
    return Endpoint(own)


def _compact_model(
    settings: SystemSettings, index: Searchable, threads: int, model: Compact | None
) -> Compact:
    """Return the embedded model for this index; it is not loaded where no stage asks for it."""
    from whichsense.models.compact.encoder import WEIGHTS
    from whichsense.models.compact.scene import Compact

    own = model or Compact(Path(settings.weights or WEIGHTS), threads)
    return own.over(index.describe().get("passages"), settings.keep)


def build_reranker(model: str, index: Searchable, keep: int = 0) -> Reranker:
    """Return a reranker by itself: "compact", or the folder of a trained one."""
    settings = RerankerSettings(model=model)
    if model == COMPACT:
        settings = RerankerSettings(provider=COMPACT)
    system = complete(SystemSettings(reranker=settings, keep=keep))
    context = BuildContext(index, _compact_model(system, index, 2, None))
    return build_stage("reranker", settings, rerank.PROVIDERS, context)
