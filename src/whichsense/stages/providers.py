"""How a stage is built: its settings, the table of its providers, and what all stages are built over.

A stage's file has a settings record with at least `provider` and `model`, and a table
`PROVIDERS` from a provider's name to a factory. A trained model needs no provider: what
it was trained as is its provider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from whichsense.errors import BadConfig, MissingStage, did_you_mean
from whichsense.files import read_json
from whichsense.protocols import Reader, Searchable
from whichsense.types import Hit, Method

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.models.llm.endpoint import Endpoint
    from whichsense.models.seq2seq.decoding import Output
    from whichsense.models.seq2seq.formats import TokenSequences
    from whichsense.models.seq2seq.generator import Generator

COMPACT = "compact"
LLM = "llm"


@dataclass(frozen=True)
class BuildContext:
    """What the stages of one system are built over."""

    index: Searchable
    compact: Compact
    """The embedded model; it loads when a stage first uses it."""
    method: Method | None = None
    device: str = ""
    reader: Reader | None = field(default=None)
    """For stages that ask the system's own reader again."""
    llm: Endpoint | None = None
    """The language model; None where no stage of the system asks one."""


@dataclass(frozen=True, slots=True)
class StageSettings:
    """What every stage's settings have."""

    provider: str = ""
    model: str = ""


Settings = TypeVar("Settings", bound=StageSettings)
Stage = TypeVar("Stage")
Factory = Callable[[Settings, BuildContext], Stage]


def build_stage(
    kind: str,
    settings: Settings,
    providers: Mapping[str, Factory[Settings, Stage]],
    context: BuildContext,
) -> Stage:
    """Return the stage that settings ask for, by their provider or by what their model was trained as."""
    provider = settings.provider or _trained_task(settings.model, kind)
    if provider not in providers:
        if settings.provider:
            problem = f"there is no provider '{provider}'. {did_you_mean(provider, providers)}"
        else:
            problem = f"'{settings.model}' was trained as '{provider}', which is not a {kind}."
        raise BadConfig(f"[{kind}]: {problem}")
    return providers[provider](settings, context)


def _trained_task(model: str, kind: str) -> str:
    """Return what a model was trained as, from the file that every task writes beside its weights."""
    if not model:
        raise BadConfig(
            f'[{kind}] needs a model: model = "runs/…/model", or a provider: provider = "{COMPACT}".'
        )
    for about in ("bert.json", "seq2seq.json"):
        if (Path(model) / about).is_file():
            return str(read_json(Path(model) / about)["task"])
    raise BadConfig(
        f"'{model}' holds no trained model. Train one (whichsense train …) or check the path."
    )


def own_reader(context: BuildContext, kind: str) -> Reader:
    """Return the system's reader, for a stage that asks again."""
    if context.reader is None:
        raise MissingStage(f"[{kind}] asks the system's reader, and there is none.")
    return context.reader


def endpoint(context: BuildContext, kind: str) -> Endpoint:
    """Return the system's language model, for a stage that asks it."""
    if context.llm is None:
        raise MissingStage(f"[{kind}] asks a language model, and the system names none: add [llm].")
    return context.llm


@dataclass(frozen=True)
class GeneratorStage:
    """What stages over a sequence-to-sequence model share. The model loads on first use."""

    tasks: ClassVar[Sequence[str]]
    """What the model may have been trained as."""
    model: str | Path | Generator
    beams: int = 4
    device: str = ""

    @cached_property
    def generator(self) -> Generator:
        from whichsense.models.seq2seq.generator import load_generator

        return load_generator(self.model, tuple(self.tasks), self.device)

    def composed(
        self, parts: Sequence[str], hits: Sequence[Hit], answer: str = ""
    ) -> TokenSequences:
        """Return the input of the model for some texts and passages, as it was trained."""
        from whichsense.models.seq2seq.formats import composed

        return composed(self.generator.codec, self.generator.form, parts, hits, answer)

    def outputs(
        self, inputs: Sequence[TokenSequences], prefixes: Sequence[Sequence[int]] | None = None
    ) -> list[list[Output]]:
        """Return the beam of each input, best first; it may be empty."""
        from whichsense.models.seq2seq.decoding import Search

        search = Search(self.beams, self.generator.form.output_tokens)
        return self.generator.generate(inputs, search, prefixes)

    def best_texts(self, inputs: Sequence[TokenSequences]) -> list[str]:
        """Return the likeliest text for each input; empty where there is no output."""
        codec = self.generator.codec
        return [codec.text(beam[0].tokens) if beam else "" for beam in self.outputs(inputs)]
