"""Task compact: the writer learns rewrites, the weights are exported, scorer and trust are fitted."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense import sample
from whichsense.errors import BadConfig
from whichsense.index import Index
from whichsense.jobs.limits import show_progress
from whichsense.lab.compact.list_task import load_start
from whichsense.lab.compact.questions import CorpusQuestions, held_out_questions, labelled_questions
from whichsense.lab.compact.scorer_fitting import fit_scorer
from whichsense.lab.compact.topics import split_topics
from whichsense.lab.compact.trust_fitting import fit_trust, judged_corpora
from whichsense.lab.compact.writer_task import WRITER, WriterOptions, WriterTask
from whichsense.lab.train.task import TaskSpec
from whichsense.models.compact.encoder import answer_ids
from whichsense.models.compact.export import CONFIG, SCORER, TRUST, VERIFIER, WRITER_LAYERS, export
from whichsense.models.compact.tagger import FRAME, TABLES, TAGGER

_TRUST_QUESTIONS = 200  # of the held-out ones: the verifier reads each once more
_READ = "read"  # a folder: what a stopped fit of the scorer has read
_FREQUENT_PIECES = 3000  # that the writer may use whatever the passages say


class CompactTask(WriterTask):
    """The best model is chosen as in compact-writer."""

    def __init__(self, options: WriterOptions) -> None:
        data = options.data
        if data.hit_files and data.held and not data.index:
            raise BadConfig(
                "The scorer is fitted by searching for the held-out questions, which data.hits cannot: give data.index "
                "too, or data.held=0 for a model without a scorer."
            )
        super().__init__(options)

    def finish(self, folder: Path) -> None:
        """Export the weights folder that the runtime reads; then fit the scorer on the held-out questions."""
        if not (folder / CONFIG).exists():
            self._export(folder)
            _keep_tagger(self.start.folder, folder)
        questions = held_out_questions(self.options.data)
        if not (folder / SCORER).exists() and questions:
            self._fit_scorer(folder)
        if not (folder / TRUST).exists() and questions:
            self._fit_trust(folder)

    def _fit_scorer(self, folder: Path) -> None:
        data = self.options.data
        index = Index.open(Path(data.index)) if data.index else sample.index()
        held_out = CorpusQuestions(index, held_out_questions(data), data.method)
        topics = split_topics(data)[1] if data.topics else None
        with show_progress("fitting the scorer", "questions") as progress:
            scorer = fit_scorer(
                folder,
                held_out,
                progress,
                labelled=labelled_questions(data),
                topics=topics,
                parts_folder=folder / _READ,
            )
        scorer.save(folder / SCORER)
        shutil.rmtree(folder / _READ, ignore_errors=True)

    def _fit_trust(self, folder: Path) -> None:
        data = self.options.data
        index = Index.open(Path(data.index)) if data.index else sample.index()
        questions = held_out_questions(data)[:_TRUST_QUESTIONS]
        held_out = CorpusQuestions(index, questions, data.method)
        judged = [(held_out, {}), *judged_corpora(data)]
        with show_progress("fitting the trust", "questions") as progress:
            trust = fit_trust(folder, judged, progress)
        trust.save(folder / TRUST)

    def data(self) -> list[Path]:
        return [*super().data(), *self.options.data.topic_files]

    def _export(self, folder: Path) -> None:
        writer = torch.load(folder / WRITER, map_location="cpu", weights_only=True)
        weights = {name: value.float().numpy() for name, value in self.start.encoder.items()}
        for name, value in writer.items():
            weights[f"writer.{name}"] = value.float().numpy()
        weights |= self._verifier_weights()
        shape = asdict(self.start.shape)
        # The runtime has no dropout, and the encoder no distances.
        del shape["dropout"], shape["buckets"]
        shape[WRITER_LAYERS] = self.shape.layers
        # A start that was exported before keeps its name and its frequent pieces.
        settings = self.start.config
        if settings is None:
            settings = {"name": "compact", "frequent": self._frequent_pieces()}
        export(weights, shape, self.start.vocabulary, folder, settings=settings)

    def _verifier_weights(self) -> dict[str, NDArray[np.float32]]:
        """Return the verifier, of its own recipe or of the model that training starts from."""
        model = self.options.model
        state: dict[str, Tensor] = {
            name: value for name, value in self.start.state.items() if name.startswith(VERIFIER)
        }
        if model.verifier:
            for name, value in load_start(model.verifier).encoder.items():
                state[VERIFIER + name] = value
        return {name: value.float().numpy() for name, value in state.items()}

    def _frequent_pieces(self) -> list[int]:
        """Return the most frequent word pieces of answers and rewrites."""
        counts: Counter[int] = Counter()
        for question in self.examples.pack.asked:
            for reading in question.rewritings:
                for rewrite in reading.rewrites:
                    counts.update(self.examples.question(rewrite))
            for names in question.answers:
                counts.update(answer_ids(self.tokenizer, names[0]))
        return sorted(piece for piece, _ in counts.most_common(_FREQUENT_PIECES))


def _keep_tagger(start: Path, folder: Path) -> None:
    """The tagger has an encoder of its own: it stays as it is."""
    for name in (TAGGER, FRAME, TABLES):
        if (start / name).exists():
            shutil.copyfile(start / name, folder / name)


SPEC = TaskSpec(WriterOptions, CompactTask)
