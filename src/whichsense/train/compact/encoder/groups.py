"""Groups of lists that the encoder learns from: datasets, synthetic questions, topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense.files import sha256
from whichsense.train.compact.data.batch import TeacherScores
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.synthetic import (
    SYNTHETIC_FILE,
    SyntheticQuestions,
    build_synthetic_lists,
)
from whichsense.train.compact.data.topics import build_topic_lists, split_topics
from whichsense.train.compact.encoder.list_task import (
    list_probabilities,
    normalize_weights,
)
from whichsense.train.compact.encoder.options import EncoderOptions, SyntheticLists
from whichsense.train.compact.encoder.teacher_scores import score_lists

# Of a passage that holds an answer, in a list of a topic that is thinned.
_TOPIC_SURVIVAL = 0.5


@dataclass(frozen=True, slots=True)
class ListGroup:
    """Lists of one origin, and how they take part in training."""

    lists: Pack
    share: float = 1.0
    """The group's share of the lists that are drawn."""
    score_folder: str | None = ""
    """Where the teacher's scores of these lists are stored; empty: nowhere. None: the teacher is not asked."""
    thinning: float | None = None
    """How often passages that hold an answer are left out of a list; None: never."""
    survival: float = 0.0
    """The probability that such a passage stays in a list that is thinned."""
    same_passages: bool = False
    """Whether the lists refer to the passages of the groups before."""

    def thin(
        self, slots: list[int], lists: Pack, rng: np.random.Generator
    ) -> list[int]:
        """Slots without some that hold an answer, unless no slot would be left."""
        if self.thinning is None or rng.random() >= self.thinning:
            return slots
        remaining = []
        for slot in slots:
            answers = len(lists.spans[slot]) > 0
            if not answers or (self.survival and rng.random() < self.survival):
                remaining.append(slot)
        return remaining or slots


def build_groups(
    options: EncoderOptions, lists: Pack, vocabulary: Sequence[str]
) -> list[ListGroup]:
    """The groups that a recipe learns from: lists of datasets, of synthetic questions, of topics."""
    made = options.made
    topics = options.topics
    groups = [ListGroup(lists, score_folder=options.lists.folder)]
    if made.folder:
        synthetic = SyntheticQuestions.load(Path(made.folder), lists)
        if len(synthetic):
            groups = [
                replace(groups[0], share=1 - made.share),
                _synthetic_group(made, lists, synthetic, vocabulary),
            ]
    if topics.share:
        # The other groups share what topics leave.
        others = 1 - topics.share
        groups = [replace(group, share=group.share * others) for group in groups]
        groups.append(_topic_group(options, vocabulary))
    return groups


def _synthetic_group(
    made: SyntheticLists,
    lists: Pack,
    synthetic: SyntheticQuestions,
    vocabulary: Sequence[str],
) -> ListGroup:
    """Synthetic questions over the passages of the datasets' lists."""
    folder = Path(made.folder)
    digest = sha256(folder / SYNTHETIC_FILE)[:12]
    return ListGroup(
        build_synthetic_lists(lists, synthetic, vocabulary),
        share=made.share,
        score_folder=str(folder / f"of-{digest}"),
        thinning=made.emptied,
        same_passages=True,
    )


def _topic_group(options: EncoderOptions, vocabulary: Sequence[str]) -> ListGroup:
    """Topics, whose gold answers are complete: the teacher is not asked."""
    topics, _ = split_topics(options.data)
    lists = build_topic_lists(topics, vocabulary)
    return ListGroup(
        lists,
        share=options.topics.share,
        score_folder=None,
        thinning=options.topics.thinned,
        survival=_TOPIC_SURVIVAL,
    )


def merge_lists(groups: Sequence[ListGroup]) -> Pack:
    """The lists of all groups, in their order."""
    merged = groups[0].lists
    for group in groups[1:]:
        # Synthetic questions refer to rows of the datasets' passages.
        if group.same_passages:
            merged = merged.extended_with(group.lists)
        else:
            merged = Pack.concatenate([merged, group.lists])
    return merged


def group_probabilities(
    groups: Sequence[ListGroup], lists: Pack, weights: Mapping[str, float]
) -> NDArray[np.float64]:
    """How often each list is drawn: together the lists of a group have the group's share."""
    # Weights hold within a group; between groups, shares do.
    ends = np.cumsum([len(group.lists) for group in groups])
    parts = np.split(list_probabilities(lists, weights), ends[:-1])
    scaled = []
    for group, part in zip(groups, parts, strict=True):
        scaled.append(normalize_weights(group.share, part))
    return np.concatenate(scaled)


def score_groups(
    groups: Sequence[ListGroup], teacher: Path, longest: int
) -> TeacherScores:
    """The teacher's scores of all slots; zeros where it is not asked.

    Groups are scored one by one: the stored scores of a group stay valid whatever the others are.
    """
    parts = []
    for group in groups:
        if group.score_folder is None:
            parts.append(TeacherScores.zeros(len(group.lists.slots.values)))
        else:
            folder = group.score_folder
            parts.append(score_lists(teacher, group.lists, folder, longest))
    return TeacherScores.concatenate(parts)
