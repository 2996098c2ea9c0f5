"""From questions to lists: passages of a search, chosen so that every answer and hard negatives are among them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from whichsense.files import read_json, sha256
from whichsense.jobs.parts import Part, PartCodec, Parts
from whichsense.jobs.progress import show_progress
from whichsense.jobs.workers import LoadedOnce, run_spread
from whichsense.train.compact.data.config import DataConfig, ListConfig
from whichsense.train.compact.data.conversion import TrainingQuestion
from whichsense.train.compact.data.list_builder import ListBuilder, Span, TitledText
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.questions import dev_questions, training_questions
from whichsense.train.compact.data.search import PassageSearch, can_fork, open_search

_POSITIVES_OF_ANSWER = 3  # passages that hold it, at most
_MAX_POSITIVES = 8  # chosen for the sake of answers
_MIN_POSITIVES = 6  # if the search finds so many
_TRAIN = "train"
_DEV = "dev"
_ADVICE = "Choose another lists.folder."
_CODEC = PartCodec(".npz", Pack.to_bytes, Pack.from_bytes)
_ListParts = Parts[TrainingQuestion, Pack]


def load_lists(
    data: DataConfig, lists: ListConfig, vocabulary: Sequence[str]
) -> tuple[Pack, Pack]:
    """The lists to train on and those to evaluate on: built now, or read from where they were stored."""
    # Missing topics are an error of the first recipe, not, hours later, of the last.
    _ = data.topic_files
    train = _Lists(data, lists, vocabulary, _TRAIN)
    dev = _Lists(data, lists, vocabulary, _DEV)
    return train.load(), dev.load()


@dataclass(frozen=True)
class _Lists:
    """Lists of one kind: to train on, or to evaluate on."""

    data: DataConfig
    lists: ListConfig
    vocabulary: Sequence[str]
    name: str

    def load(self) -> Pack:
        if not self.lists.folder:
            search = open_search(self.data)
            return self._build(self._questions(), search, seed=self.name)
        parts = _ListParts(
            Path(self.lists.folder),
            self.name,
            self._fingerprint(),
            size=self.lists.part,
            codec=_CODEC,
            advice=_ADVICE,
        )
        if not parts.is_complete:
            self._write(parts)
        finished = parts.folder / f"{self.name}.json"
        return _read(finished, finished.stat().st_mtime_ns)

    def _questions(self) -> list[TrainingQuestion]:
        if self.name == _TRAIN:
            return training_questions(self.data)
        return dev_questions(self.data)

    def _fingerprint(self) -> dict[str, object]:
        """What lists depend on: others need another folder."""
        data = self.data
        lists = self.lists
        return {
            "files": [sha256(path) for path in data.paths()],
            "without": list(data.without),
            "held": data.held,
            "limit": data.limit,
            "dev_limit": data.dev_limit,
            "method": data.method,
            "depth": lists.depth,
            "passages": lists.passages,
            "measured": lists.measured,
        }

    def _write(self, parts: _ListParts) -> None:
        search = LoadedOnce(partial(open_search, self.data))
        # It is opened here, once for all forked processes.
        processes = self.lists.processes if can_fork(search()) else 1

        def build_part(part: Part[TrainingQuestion]) -> Pack:
            return self._build(part.items, search(), seed=f"{self.name}/{part.number}")

        with show_progress(f"lists of {self.name}", "questions") as progress:
            parts.complete(
                self._questions(),
                build_part,
                executor=run_spread(processes),
                progress=progress,
                wait=True,
            )

    def _build(
        self, questions: Sequence[TrainingQuestion], search: PassageSearch, seed: str
    ) -> Pack:
        builder = ListBuilder(self.vocabulary)
        rng = random.Random(seed)
        hits = self._search(questions, search)
        for question, found in zip(questions, hits, strict=True):
            answers = builder.answers(question)
            own = [(one.title, one.text) for one in question.passages]
            # Passages with their spans, each once, in the order of the search.
            spans = {}
            for passage in (*own, *found):
                spans[passage] = builder.find_spans(passage, answers)
            if self.name == _TRAIN:
                passages = self._choose(spans, len(answers), rng)
            else:
                passages = list(spans)[: self.lists.measured]
            builder.add(question, passages, [spans[one] for one in passages])
        return builder.build()

    def _search(
        self, questions: Sequence[TrainingQuestion], search: PassageSearch
    ) -> list[list[TitledText]]:
        """The hits of each question; none for those that bring all their passages."""
        texts = [one.text for one in questions if one.searched]
        # One call for all questions: the index searches them together.
        results = search.search_many(texts, self.lists.depth, self.data.method)
        found = iter(results)
        passages = []
        for question in questions:
            hits = next(found) if question.searched else []
            own = [(hit.passage.title, hit.passage.text) for hit in hits]
            passages.append(own)
        return passages

    def _choose(
        self,
        spans: Mapping[TitledText, Sequence[Span]],
        answers: int,
        rng: random.Random,
    ) -> list[TitledText]:
        """Positives for every answer, then hard negatives that the search ranked high; in the order of the search."""
        positives: list[TitledText] = []
        negatives: list[TitledText] = []
        for passage, own in spans.items():
            (positives if own else negatives).append(passage)
        chosen = _choose_positives(positives, spans, answers)
        room = self.lists.passages - len(chosen)
        # Drawn from a few more than there is room for, so that lists differ.
        hard = negatives[: int(room * 1.4) + 2]
        rng.shuffle(hard)
        chosen += hard[:room]
        order = {passage: place for place, passage in enumerate(spans)}
        return sorted(chosen, key=order.__getitem__)


def _choose_positives(
    positives: Sequence[TitledText],
    spans: Mapping[TitledText, Sequence[Span]],
    answers: int,
) -> list[TitledText]:
    """A few passages for every answer, then others up to a minimum."""
    by_answer: dict[TitledText, None] = {}
    for number in range(answers):
        count = 0
        for passage in positives:
            holds = any(answer == number for answer, _, _ in spans[passage])
            if holds and count < _POSITIVES_OF_ANSWER:
                by_answer[passage] = None
                count += 1
    chosen = list(by_answer)[:_MAX_POSITIVES]
    for passage in positives:
        if len(chosen) < _MIN_POSITIVES and passage not in chosen:
            chosen.append(passage)
    return chosen


@lru_cache(maxsize=2)
def _read(finished: Path, written: int) -> Pack:
    """Complete lists, read once for all recipes that one command trains. `written`: when the file was."""
    fingerprint = read_json(finished)["about"]
    parts = _ListParts(
        finished.parent, finished.stem, fingerprint, size=1, codec=_CODEC
    )
    return Pack.concatenate(parts)
