"""The index and the systems that answer now. A newer generation of the index takes their place under load."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from whichsense import sample
from whichsense.errors import BadConfig, WhichsenseError
from whichsense.index import Index
from whichsense.jobs.limits import Limits
from whichsense.pipeline import Pipeline
from whichsense.providers import COMPACT
from whichsense.serve.problems import Problem, Refused
from whichsense.serve.settings import ServiceSettings
from whichsense.systems.settings import load_settings
from whichsense.types import Case

BuildPipeline = Callable[[Index], Pipeline]
BuildSystems = Mapping[str, BuildPipeline]
"""By the name of the system; the first answers where none is named."""
_TRIED = "Which sense?"  # asked of a generation before it is served
_log = logging.getLogger("whichsense.serve")


@dataclass(frozen=True, slots=True)
class Served:
    """One generation of the index with the systems over it. A request keeps the one that it began with."""

    index: Index
    systems: Mapping[str, Pipeline]

    @property
    def system(self) -> str:
        """The name of the system that answers where none is named."""
        return next(iter(self.systems))

    @property
    def pipeline(self) -> Pipeline:
        """What answers where no system is named."""
        return self.systems[self.system]

    def choose(self, system: str) -> Pipeline:
        """The pipeline of a system by its name, without one the first; Refused where there is none."""
        system = system or self.system
        if system in self.systems:
            return self.systems[system]
        names = ", ".join(self.systems)
        raise Refused(
            Problem(
                409,
                "system",
                "There is no such system here.",
                f'Name one of these: {names}; or leave "system" out.',
            )
        )


class Engine:
    """What answers. Threads share it: a pipeline is a frozen value, and the swap is one assignment."""

    def __init__(
        self,
        settings: ServiceSettings,
        build: BuildPipeline | BuildSystems | None = None,
    ) -> None:
        self._settings = settings
        if callable(build):
            build = {system_name(settings.system): build}
        self._builds = build
        self.about: dict[str, str] = {}
        """What the systems' files say of them, by name."""
        self.fault = ""
        """Why the newest generation of the index is not served, without paths; empty where it is."""
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
        place = self._settings.index or None
        if self._settings.cluster:
            from whichsense.cluster import ClusterIndex

            address, replicas = self._settings.cluster, self._settings.replicas
            folder = sample.place_of(place)
            index: Index = ClusterIndex.connected(address, folder, replicas)
        else:
            index = sample.open_index(place)
        if self._builds is None:
            self._builds = _default_builds(self._settings)
            for system in (self._settings.system, *self._settings.compare):
                self.about[system_name(system)] = load_settings(system).about
        self._served = self._serve(index)

    def _serve(self, index: Index) -> Served:
        """The systems over an index that each of them can search; raises where one cannot."""
        systems = {}
        for name, build in (self._builds or {}).items():
            systems[name] = build(index).with_threshold(self._settings.threshold)
            systems[name].retriever.retrieve([Case(_TRIED)], 1)
        return Served(index, systems)

    def refresh(self) -> bool:
        """Move on to a newer generation of the index, if there is one. What is there stays where that fails, and
        `fault` says why."""
        if self._served is None:
            return False
        with self._refreshing:
            old = self._served.index
            try:
                index = old.refreshed()
                if index is not old:
                    self._served = self._serve(index)
            except Exception as error:  # whatever is wrong with it, the old one answers
                fault = _without_paths(str(error), old.folder)
                if fault != self.fault:  # it is tried again every second
                    _log.error("the newest index cannot be served: %s", error)
                self.fault = fault
                return False
            self.fault = ""
            if index is old:
                return False
        _log.info("generation %d of the index is served now", index.manifest.generation)
        return True


def _without_paths(message: str, folder: Path) -> str:
    """A message as clients may read it.

    >>> _without_paths("'/data/wiki' has no vectors.", Path("/data/wiki"))
    "'wiki' has no vectors."
    """
    return re.sub(r"'/[^']*/", "'", message).replace(str(folder), folder.name)


def system_name(system: str) -> str:
    """What requests call a system: its file's name without the suffix.

    >>> system_name("systems/compact-shallow.toml"), system_name("compact")
    ('compact-shallow', 'compact')
    """
    return Path(system).name.removesuffix(".toml")


def _default_builds(settings: ServiceSettings) -> BuildSystems:
    """The systems that the settings name. Models that several of them use, or all generations, are there once."""
    from whichsense.models.compact.encoder.runtime import WEIGHTS
    from whichsense.models.compact.scene import Compact
    from whichsense.systems.build import TrainedStages, load

    embedded: dict[str, Compact] = {}  # by their weights
    trained: TrainedStages = {}
    builds: dict[str, BuildPipeline] = {}
    for system in (settings.system, *settings.compare):
        name = system_name(system)
        if name in builds:
            raise BadConfig(
                f"Two of the systems are called '{name}'. Rename one of the files."
            )
        weights = settings.weights or load_settings(system).weights or str(WEIGHTS)
        model = embedded.setdefault(weights, Compact(Path(weights), settings.threads))
        if system == COMPACT:
            model.load()  # damaged weights are reported now, and the first question does not wait

        def build(
            index: Index, system: str = system, model: Compact = model
        ) -> Pipeline:
            method = settings.method
            return load(system, index, method=method, model=model, trained=trained)

        builds[name] = build
    return builds


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
