"""The index and the pipeline that answer now. A newer generation of the index takes their place under load."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from whichsense import sample
from whichsense.errors import WhichsenseError
from whichsense.index import Index
from whichsense.jobs.limits import Limits
from whichsense.pipeline import Pipeline
from whichsense.providers import COMPACT
from whichsense.serve.settings import ServiceSettings
from whichsense.types import Case

BuildPipeline = Callable[[Index], Pipeline]
_log = logging.getLogger("whichsense.serve")


@dataclass(frozen=True, slots=True)
class Served:
    """One generation of the index with the pipeline over it. A request keeps the one that it began with."""

    index: Index
    pipeline: Pipeline


class Engine:
    """What answers. Threads share it: a pipeline is a frozen value, and the swap is one assignment."""

    def __init__(
        self, settings: ServiceSettings, build: BuildPipeline | None = None
    ) -> None:
        self._settings = settings
        self._build = build
        self._served: Served | None = None
        self._refreshing = threading.Lock()

    @property
    def is_ready(self) -> bool:
        return self._served is not None

    @property
    def served(self) -> Served:
        if self._served is None:
            raise WhichsenseError(
                "The models are still loading. Wait until /readyz says so."
            )
        return self._served

    def load(self) -> None:
        """Open the index and load the models, once, in a thread of its own."""
        index = sample.open_index(self._settings.index or None)
        if self._build is None:
            self._build = _default_build(self._settings)
        self._served = Served(index, self._build(index))

    def refresh(self) -> bool:
        """Move on to a newer generation of the index, if there is one. What is there stays where that fails."""
        if self._served is None or self._build is None:
            return False
        with self._refreshing:
            old = self._served.index
            try:
                index = old.refreshed()
                if index is old:
                    return False
                self._served = Served(index, self._build(index))
            except (WhichsenseError, OSError) as error:
                _log.warning("the index could not be refreshed: %s", error)
                return False
        _log.info("generation %d of the index is served now", index.manifest.generation)
        return True


def _default_build(settings: ServiceSettings) -> BuildPipeline:
    """The system that the settings name; all generations share one embedded model."""
    from whichsense.models.compact.encoder.runtime import WEIGHTS
    from whichsense.models.compact.scene import Compact
    from whichsense.systems.build import load

    model = Compact(Path(settings.weights or WEIGHTS), settings.threads)
    if settings.system == COMPACT:
        model.load()  # damaged weights are reported now, and the first question does not wait

    def build(index: Index) -> Pipeline:
        return load(settings.system, index, method=settings.method, model=model)

    return build


@dataclass(frozen=True, slots=True)
class WatchedPipeline(Pipeline):
    """A pipeline that tells one listener of every stage and keeps to one answer's limits, whoever asks it."""

    limits: Limits | None = None
    listener: Callable[[str, Case], None] = lambda stage, case: None

    @classmethod
    def of(
        cls, pipeline: Pipeline, limits: Limits, listener: Callable[[str, Case], None]
    ) -> WatchedPipeline:
        stages = {one.name: getattr(pipeline, one.name) for one in fields(Pipeline)}
        return cls(**stages, limits=limits, listener=listener)

    def run(self, *arguments: Any, **options: Any) -> list[Case]:
        # slots make a second class of this one, which super() without arguments would miss.
        return Pipeline.run(self, *arguments, **self._watched(options))

    def advance(self, *arguments: Any, **options: Any) -> Case:
        return Pipeline.advance(self, *arguments, **self._watched(options))

    def _watched(self, options: dict[str, Any]) -> dict[str, Any]:
        return options | {"limits": self.limits, "on_stage": self._tell}

    def _tell(self, stage: str, cases: Sequence[Case]) -> None:
        for case in cases:
            self.listener(stage, case)
