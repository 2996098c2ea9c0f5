"""The last recipe of the compact model: the writer learns rewrites, then encoder and writer are written out together,
and the scorer is fitted."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import torch

from whichsense import sample
from whichsense.errors import BadConfig
from whichsense.index import Index
from whichsense.jobs.progress import show_progress
from whichsense.models.compact.encoder.inputs import answer_ids
from whichsense.models.compact.export import CONFIG, SCORER, export
from whichsense.train.compact.data.corpora import Source
from whichsense.train.compact.data.questions import held_out, labelled
from whichsense.train.compact.data.topics import parted
from whichsense.train.compact.scorer.fitting import fit_scorer
from whichsense.train.compact.writer.writer import Options, WriterTask
from whichsense.train.compact.writer.writing import WRITER

_TOLD = "told"  # a folder: what a fit of the scorer that is stopped has read
_FREQUENT = 3000  # word pieces that an answer may have whatever stands in the passages


def make(options: Options) -> WholeTask:
    return WholeTask(options)


class WholeTask(WriterTask):
    """Chosen as the writer is."""

    def __init__(self, options: Options) -> None:
        data = options.data
        if data.kept and data.held and not data.index:
            raise BadConfig(
                "The scorer is fitted by searching for the held-out questions, which data.hits cannot: give data.index "
                "too, or data.held=0 for a model without a scorer."
            )
        super().__init__(options)

    def finish(self, folder: Path) -> None:
        """The weights folder that the runtime reads; then the scorer, on the questions that were held out."""
        if not (folder / CONFIG).exists():
            self._write_out(folder)
        data, path = self.options.data, folder / SCORER
        held = held_out(data)
        if path.exists() or not held:
            return
        index = Index.open(Path(data.index)) if data.index else sample.index()
        source, kept = Source(index, held, data.method), folder / _TOLD
        held_topics = parted(data)[1] if data.topics else None
        with show_progress("fitting the scorer", "questions") as progress:
            fit_scorer(
                folder,
                source,
                progress,
                learnt=labelled(data),
                topics=held_topics,
                kept=kept,
            ).save(path)
        shutil.rmtree(kept, ignore_errors=True)

    def data(self) -> list[Path]:
        return [*super().data(), *self.options.data.topic_files]

    def _write_out(self, folder: Path) -> None:
        writer = torch.load(folder / WRITER, map_location="cpu", weights_only=True)
        weights = {
            name: value.float().numpy() for name, value in self.start.encoder.items()
        }
        weights |= {
            f"writer.{name}": value.float().numpy() for name, value in writer.items()
        }
        shape = {
            name: value
            for name, value in asdict(self.start.shape).items()
            if name != "dropout"
        }
        settings = self.start.config or {"name": "compact", "frequent": self.frequent}
        export(
            weights,
            shape | {"writer_layers": self.shape.layers},
            self.start.vocabulary,
            folder,
            settings=settings,
        )

    @property
    def frequent(self) -> list[int]:
        """The commonest word pieces of answers and rewrites."""
        counts: Counter[int] = Counter()
        for one in self.examples.pack.asked:
            for reading in one.rewritings:
                for rewrite in reading.rewrites:
                    counts.update(self.examples.question(rewrite))
            for names in one.answers:
                counts.update(answer_ids(self.tokenizer, names[0]))
        return sorted(piece for piece, _ in counts.most_common(_FREQUENT))
