"""Task compact-people: a writer for people learns from rewrites that were written for the very passages.

It starts from the writer of annotators' rewrites and shares its embedding tables: only its layers are its own.
"""

from __future__ import annotations

from pathlib import Path

from whichsense.errors import BadConfig
from whichsense.models.compact.writer.net import WriterNet
from whichsense.train.compact.data.lists import load_lists
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.topics import build_topic_lists, split_topics
from whichsense.train.compact.writer.base_task import freeze_tables
from whichsense.train.compact.writer.writer import WriterOptions, WriterTask
from whichsense.train.loop.task import TaskSpec


class PeopleWriterTask(WriterTask):
    """The best model has the best EDIT-F1 of the likeliest rewrites of held-out topics."""

    def load_lists(self) -> tuple[Pack, Pack]:
        """The lists of datasets and of topics; those of held-out topics."""
        data = self.options.data
        if not data.topics:
            raise BadConfig("compact-people learns from topics: give data.topics.")
        vocabulary = self.start.vocabulary
        train, _ = load_lists(data, self.options.lists, vocabulary)
        topics, held_out = split_topics(data)
        both = Pack.concatenate([train, build_topic_lists(topics, vocabulary)])
        return both, build_topic_lists(held_out, vocabulary)

    def build(self) -> WriterNet:
        net = super().build()
        freeze_tables(net)
        return net

    def data(self) -> list[Path]:
        return [*super().data(), *self.options.data.topic_files]


SPEC = TaskSpec(WriterOptions, PeopleWriterTask)
