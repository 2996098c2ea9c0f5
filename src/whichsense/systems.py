"""Systems: a TOML file that says which model does each stage becomes something with the verb `readings`.

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

Any stage may say `provider = "compact"` in place of a model: the embedded default does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from whichsense.config import from_table, load_as
from whichsense.errors import BadConfig, MissingStage
from whichsense.files import read_json, sha256
from whichsense.index import Index
from whichsense.index.saved_hits import SavedHits
from whichsense.pipeline import Pipeline
from whichsense.protocols import Answerer, Disambiguator, Reader, Reranker, Verifier
from whichsense.stages.baselines import DisambiguateFirst
from whichsense.stages.detect import BertDetector
from whichsense.stages.disambiguate import FirstRewriter, PromptCopy, SeqDisambiguator
from whichsense.stages.read import ExtractiveReader, SeqReader, VotingReader
from whichsense.stages.rerank import CrossEncoderReranker, JointReranker
from whichsense.stages.retrieve import IndexRetriever
from whichsense.stages.verify import REFUEL_THRESHOLD, EMVerifier, LMVerifier
from whichsense.types import Method

PROVIDERS = ("compact",)
DEPTH, KEEP = 100, 20
Provider = Literal["", "compact"]


class _Stage(Protocol):
    @property
    def provider(self) -> str: ...


@dataclass(frozen=True, slots=True)
class RerankerTable:
    provider: Provider = ""
    model: str = ""
    picks: int = 10
    """Of a joint reranker: how many are picked in view of each other."""


@dataclass(frozen=True, slots=True)
class ReaderTable:
    provider: Provider = ""
    model: str = ""
    models: tuple[str, ...] = ()
    """Several, which vote."""
    beams: int = 4
    threshold: float | None = None
    """γ of an extractive reader (otherwise its own), or the zero-shot threshold of a sequence-to-sequence one."""


@dataclass(frozen=True, slots=True)
class DisambiguatorTable:
    provider: Literal["", "compact", "prompt-copy"] = ""
    model: str = ""
    beams: int = 4


@dataclass(frozen=True, slots=True)
class VerifierTable:
    provider: Provider = ""
    model: str = ""
    kind: Literal["lm", "em"] = "lm"
    threshold: float = REFUEL_THRESHOLD


@dataclass(frozen=True, slots=True)
class ModelTable:
    model: str


@dataclass(frozen=True, slots=True)
class SystemTable:
    """Everything that a system's file may say."""

    name: str = ""
    about: str = ""
    provider: Provider = ""
    """For the whole system; a stage that is given says otherwise for itself."""
    method: Method | None = None
    depth: int = 0
    """Passages that are retrieved; 0: 100, or what suits the embedded default."""
    keep: int = 0
    """Passages that are read; 0: 20, or what suits the embedded default."""
    rounds: int = 0
    device: str = ""
    weights: str = ""
    """The embedded default's: a weights folder, as `whichsense train compact` leaves it; empty: those that ship."""
    reranker: RerankerTable | None = None
    reader: ReaderTable | None = None
    disambiguator: DisambiguatorTable | None = None
    verifier: VerifierTable | None = None
    detector: ModelTable | None = None
    rewriter: ModelTable | None = None
    """With `detector`: AmbigQA's DISAMBIG-FIRST, which rewrites before it reads."""


@dataclass(frozen=True, slots=True)
class System:
    """A system that is ready: its name, what answers, and whether it rewrites questions at all."""

    name: str
    answerer: Answerer
    rewrites: bool = True
    table: SystemTable = field(default_factory=SystemTable)


def load_system(path: str | Path) -> SystemTable:
    """What a system's file says."""
    table = load_as(SystemTable, path)
    return table if table.name else replace(table, name=Path(path).stem)


def provided_system(provider: str) -> SystemTable:
    """A provider's whole system: all its stages with their own settings."""
    if provider not in PROVIDERS:
        raise BadConfig(
            f"'{provider}' has no system of its own (there are: {', '.join(PROVIDERS)}). "
            "Name the model of each stage in a file: --system FILE.toml"
        )
    return from_table(SystemTable, {"name": provider, "provider": provider})


def made(table: SystemTable, index: Index | SavedHits) -> System:
    """The system itself, over an index or what was found in it. Models load when the first question comes."""
    embedded = compact(table, index) if _asks_for_compact(table) else None
    retriever, where = IndexRetriever(index, table.method), f"System '{table.name}'"
    depth = table.depth or (embedded.depth if embedded else DEPTH)
    keep = table.keep or (embedded.keep if embedded else KEEP)
    told = replace(table, depth=depth, keep=keep)
    reranker, reader = _reranker(table, embedded), _reader(table, embedded)
    if reader is None:
        raise MissingStage(
            f'{where} needs a reader. Add to its file: [reader] model = "…", or provider = "compact".'
        )
    if table.rewriter and table.detector:
        detector = BertDetector(table.detector.model, device=table.device)
        rewriter = FirstRewriter(table.rewriter.model, device=table.device)
        first = DisambiguateFirst(
            detector, rewriter, retriever, reader, reranker, depth, keep
        )
        return System(table.name, first, table=told)
    if table.rewriter or table.detector:
        raise BadConfig(
            f"{where} rewrites first: that needs both [detector] and [rewriter]."
        )
    disambiguator, verifier = (
        _disambiguator(table, embedded),
        _verifier(table, embedded, reader),
    )
    stages = (reranker, reader, disambiguator or PromptCopy(), verifier)
    pipeline = Pipeline(retriever, *stages, depth=depth, keep=keep, rounds=table.rounds)
    return System(table.name, pipeline, disambiguator is not None, told)


def described(table: SystemTable, index: Index | SavedHits) -> dict[str, Any]:
    """What decides a system's answers: its settings, which compact model it asks for, which training run each other
    model is from, and the index."""
    found = _settings(table)
    if isinstance(index, SavedHits):
        return found | {
            "index": index.about["index"],
            "passages": index.about["passages"],
            "hits": sha256(index.path),
        }
    return found | {"index": index.manifest.created, "passages": len(index)}


def _settings(table: SystemTable) -> dict[str, Any]:
    found = asdict(table)
    del found["about"]  # prose: it decides nothing
    if _asks_for_compact(table):
        from whichsense.models.compact.encoder.runtime import WEIGHTS

        found["compact"] = table.weights or WEIGHTS.name
    del found["weights"]
    models = [
        one
        for stage in found.values()
        if isinstance(stage, dict)
        for one in _models(stage)
    ]
    models += [table.weights] if table.weights else []
    return found | {"models": training_runs(models)}


def training_runs(models: Iterable[str]) -> dict[str, str]:
    """Of each model folder that a training run wrote, which run that was."""
    chosen = {model: Path(model) / "selected.json" for model in models}
    return {model: sha256(path) for model, path in chosen.items() if path.is_file()}


def _models(stage: Mapping[str, Any]) -> list[str]:
    return [
        model for model in (stage.get("model", ""), *stage.get("models", ())) if model
    ]


def _reranker(table: SystemTable, embedded: Pipeline | None) -> Reranker | None:
    given = table.reranker
    if _by_compact(table, given):
        return embedded.reranker if embedded else None
    if given is None:
        return None
    return trained_reranker(given.model, given.picks, table.device)


def trained_reranker(
    model: str, picks: int = JointReranker.picks, device: str = ""
) -> Reranker:
    """The reranker of a model folder, whichever it was trained as."""
    if _trained_as(model) == "joint-reranker":
        return JointReranker(model, picks, device)
    return CrossEncoderReranker(model, device)


def _reader(table: SystemTable, embedded: Pipeline | None) -> Reader | None:
    given = table.reader
    if _by_compact(table, given):
        return embedded.reader if embedded else None
    if given is None:
        return None
    if given.models:
        return VotingReader(
            [_one_reader(model, given, table.device) for model in given.models]
        )
    return _one_reader(given.model, given, table.device)


def _one_reader(model: str, given: ReaderTable, device: str) -> Reader:
    if _trained_as(model) == "extractive-reader":
        return ExtractiveReader(model, given.threshold, device)
    return SeqReader(model, given.beams, given.threshold or 0.0, device)


def _disambiguator(
    table: SystemTable, embedded: Pipeline | None
) -> Disambiguator | None:
    given = table.disambiguator
    if _by_compact(table, given):
        return embedded.disambiguator if embedded else None
    if given is None:
        return None
    return (
        PromptCopy()
        if given.provider
        else SeqDisambiguator(_needed(given.model), given.beams, table.device)
    )


def _verifier(
    table: SystemTable, embedded: Pipeline | None, reader: Reader
) -> Verifier | None:
    given = table.verifier
    if _by_compact(table, given):
        return embedded.verifier if embedded else None
    if given is None:
        return None
    if given.kind == "em":
        return EMVerifier(
            _one_reader(given.model, ReaderTable(), table.device)
            if given.model
            else reader
        )
    return LMVerifier(_needed(given.model), given.threshold, table.device)


def compact(table: SystemTable, index: Index | SavedHits) -> Pipeline:
    """The embedded default over an index, with all its stages: those that a system asks for are taken from it."""
    from whichsense import compact as embedded

    if isinstance(index, SavedHits):
        raise BadConfig(
            f"The embedded default searches by itself: give it an index in place of '{index.path}'."
        )
    sizes = {name: size for name in ("depth", "keep") if (size := getattr(table, name))}
    # A dataset's questions have answers, and its metric counts a question without one as wrong.
    return embedded.load(
        index,
        method=table.method,
        weights=table.weights or None,
        cautious=False,
        **sizes,
    )


def _by_compact(table: SystemTable, given: _Stage | None) -> bool:
    """Whether the embedded default does a stage: it says so, or says nothing and the whole system is compact."""
    return (table.provider if given is None else given.provider) == "compact"


def _asks_for_compact(table: SystemTable) -> bool:
    stages = (table.reranker, table.reader, table.disambiguator, table.verifier)
    return any(_by_compact(table, stage) for stage in stages)


def _needed(model: str) -> str:
    if not model:
        raise BadConfig(
            'A stage needs a model: model = "runs/…/model", or provider = "compact".'
        )
    return model


def _trained_as(model: str) -> str:
    """The task of a trained folder, from the file that every kind of model writes beside its weights."""
    for about in ("bert.json", "seq2seq.json"):
        if (Path(_needed(model)) / about).is_file():
            return str(read_json(Path(model) / about)["task"])
    raise BadConfig(
        f"'{model}' holds no trained model. Train one (whichsense train …) or check the path."
    )
