"""Read the hits of a search through both halves of the encoder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from whichsense.models.compact.candidates import Evidence
from whichsense.models.compact.encoder import (
    LONGEST_QUESTION,
    CompactModel,
    Floats,
    Late,
    Pair,
    pair,
)
from whichsense.models.compact.scorer import pool_states
from whichsense.types import Hit

_LEAST_SCORE = 0.05  # of the best search score: lower ones count as this


def encode_question(model: CompactModel, question: str) -> Floats:
    """The pooled states of a question without a passage."""
    ids = model.tokenizer.ids(question, LONGEST_QUESTION)
    ((states, _),) = model.early([pair(model.tokenizer, ids, "", "")])
    (late,) = model.late([states])
    return pool_states(states[0], late.states)


def read_hits(
    model: CompactModel, question: str, hits: Sequence[Hit], bonuses: Sequence[float], keep: int
) -> tuple[Evidence, tuple[Hit, ...]]:
    """The evidence of the best `keep` hits, and the other hits in order. `bonuses` are added to the hits' relevance."""
    ids = model.tokenizer.ids(question, LONGEST_QUESTION)
    pairs = []
    for hit in hits:
        passage = hit.passage
        pairs.append(pair(model.tokenizer, ids, passage.title, passage.text))
    # The question without a passage is encoded beside them, for the probe of its ambiguity.
    bare = pair(model.tokenizer, ids, "", "")
    *early, (bare_states, _) = model.early([*pairs, bare])
    scores = []
    for (_, score), bonus in zip(early, bonuses, strict=True):
        scores.append(score + bonus)
    order = sorted(range(len(hits)), key=lambda place: -scores[place])
    best, others = order[:keep], order[keep:]
    states = [early[place][0] for place in best]
    *read, bare_late = model.late([*states, bare_states])
    late: dict[int, Late] = {}
    for place, output in zip(best, read, strict=True):
        relevance = output.relevance + bonuses[place]
        late[place] = replace(output, relevance=relevance)
    alone = pool_states(bare_states[0], bare_late.states)
    evidence = replace(_rank_evidence(question, hits, pairs, late), alone=alone)
    return evidence, _rank_others(evidence, hits, others, scores)


def _rank_evidence(
    question: str, hits: Sequence[Hit], pairs: Sequence[Pair], late: Mapping[int, Late]
) -> Evidence:
    """The evidence of the hits with late outputs (by place among the hits), most relevant first."""
    order = sorted(late, key=lambda place: -late[place].relevance)
    ranked = []
    ranked_pairs = []
    read = []
    found = []  # rank and score in the search
    for place in order:
        ranked.append(Hit(hits[place].passage, late[place].relevance))
        ranked_pairs.append(pairs[place])
        read.append(late[place])
        found.append((place, hits[place].score))
    return Evidence(
        question=question,
        hits=tuple(ranked),
        pairs=tuple(ranked_pairs),
        read=tuple(read),
        found=tuple(found),
    )


def _rank_others(
    evidence: Evidence, hits: Sequence[Hit], others: Sequence[int], scores: Sequence[float]
) -> tuple[Hit, ...]:
    """The hits without late outputs, with scores below all of the evidence's."""
    floor = min((hit.score for hit in evidence.hits), default=0.0)
    first = max((scores[place] for place in others), default=0.0)
    ranked = []
    for place in others:
        score = floor - 1 + scores[place] - first
        ranked.append(Hit(hits[place].passage, score))
    return tuple(ranked)


def log_search_scores(hits: Sequence[Hit]) -> list[float]:
    """The logarithm of each hit's search score relative to the best: at most 0."""
    top = max((hit.score for hit in hits), default=0.0)
    if top <= 0:
        return [0.0] * len(hits)
    logs = []
    for hit in hits:
        share = max(hit.score / top, _LEAST_SCORE)
        logs.append(math.log(share))
    return logs
