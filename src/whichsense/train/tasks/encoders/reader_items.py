"""What the extractive reader learns from: questions, the passages that hold each gold answer, and the token spans."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from whichsense.datasets import Question, rewrites_as_questions
from whichsense.errors import BadInput
from whichsense.metrics.answers import normal_form
from whichsense.models.bert.inputs import InputRow
from whichsense.text.words import words
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.types import Passage


@dataclass(frozen=True, slots=True)
class ReaderItem:
    """A question, for each gold answer the passages that hold it, and the other passages."""

    question: Question
    homes: tuple[tuple[Passage, ...], ...]
    others: tuple[Passage, ...]

    def draw_passages(self, count: int, rng: random.Random) -> list[Passage]:
        """One passage for each answer, then others up to `count`, in random order."""
        chosen: dict[str, Passage] = {}
        for home in self.homes:
            if home:
                passage = rng.choice(home)
                chosen[passage.id] = passage
        rest: dict[str, Passage] = {}
        for home in (*self.homes, self.others):
            for passage in home:
                if passage.id not in chosen:
                    rest[passage.id] = passage
        missing = max(0, min(len(rest), count - len(chosen)))
        passages = [*chosen.values(), *rng.sample(list(rest.values()), missing)]
        rng.shuffle(passages)
        return passages

    def gold_spans(
        self, passage: Passage, row: InputRow, longest: int
    ) -> list[tuple[int, int, int]]:
        """The token spans of a row that are gold answers: first token, last token, number of the answer."""
        first_tokens: dict[int, int] = {}  # by the character at which a token begins
        last_tokens: dict[int, int] = {}  # by the character at which it ends
        for token, (start, end) in enumerate(row.places):
            first_tokens.setdefault(start, token)
            last_tokens[end] = token
        spans = []
        answers = zip(self.question.answers, self.homes, strict=True)
        for number, (aliases, home) in enumerate(answers):
            home_ids = {other.id for other in home}
            if passage.id not in home_ids:
                continue
            for start, end in _find_answer(aliases, passage.text):
                first = first_tokens.get(start)
                last = last_tokens.get(end)
                if first is not None and last is not None and last - first < longest:
                    offset = row.text_start
                    spans.append((offset + first, offset + last, number))
        return spans


def build_items(
    questions: Sequence[Question], evidence: EvidenceSearch, *, rewrites: bool = False
) -> list[ReaderItem]:
    """Items of all questions of which a passage holds an answer; with `rewrites` also of their rewrites."""
    evidence.search([question.text for question in questions])
    items = []
    for question in questions:
        passages = {}
        for hit in evidence.hits(question.text):
            passages[hit.passage.id] = hit.passage
        variants = [question]
        if rewrites:
            variants += rewrites_as_questions(question)
        for variant in variants:
            # A question and its rewrites share their passages, annotated ones included.
            item = _build_item(variant, passages, evidence)
            if any(item.homes):
                items.append(item)
    if not items:
        raise BadInput(
            "No gold answer stands in a passage that the index finds: there is nothing to learn."
        )
    return items


def _build_item(
    question: Question, passages: dict[str, Passage], evidence: EvidenceSearch
) -> ReaderItem:
    """The item of one question; annotated passages that are missing in `passages` are added to it."""
    annotated = _annotated_passages(question)
    for keys in annotated:
        for key in sorted(keys):
            if key not in passages:
                passages[key] = evidence.passage(key)
    homes = []
    at_home: set[str] = set()
    for aliases, keys in zip(question.answers, annotated, strict=True):
        home = []
        for passage in _candidate_passages(aliases, passages, keys):
            if _find_answer(aliases, passage.text):
                home.append(passage)
                at_home.add(passage.id)
        homes.append(tuple(home))
    others = []
    for passage in passages.values():
        if passage.id not in at_home:
            others.append(passage)
    return ReaderItem(question, tuple(homes), tuple(others))


def _candidate_passages(
    aliases: Sequence[str], passages: Mapping[str, Passage], annotated: Set[str]
) -> Iterator[Passage]:
    """Passages with all words of some alias, of those that annotators named, if they did: a cheap first test."""
    alias_words = list(map(words, aliases))
    for key, passage in passages.items():
        if annotated and key not in annotated:
            continue
        text = passage.text.lower()
        for own in alias_words:
            if all(word in text for word in own):
                yield passage
                break


def _annotated_passages(question: Question) -> list[set[str]]:
    """For each distinct answer the ids of the passages that annotators named for it."""
    annotated = []
    for aliases in question.answers:
        forms = set(map(normal_form, aliases))
        keys: set[str] = set()
        for annotation in question.annotations:
            for pair in annotation.pairs:
                pair_forms = set(map(normal_form, pair.answers))
                if forms & pair_forms:
                    keys |= set(pair.evidence)
        annotated.append(keys)
    return annotated


def _find_answer(aliases: Sequence[str], text: str) -> list[tuple[int, int]]:
    """The character spans of a text that are an answer in whole words, under any of its aliases.

    >>> _find_answer(["Lon Chaney Sr.", "Lon Chaney"], "In it Lon  Chaney (Lon Chaney, Sr.) plays.")
    [(6, 17), (19, 33)]
    """
    patterns = []
    for alias in aliases:
        pattern = r"\W+".join(map(re.escape, re.findall(r"\w+", alias)))
        if pattern:
            patterns.append(pattern)
    if not patterns:
        return []
    # The longest alias first, so that it is matched whole.
    patterns.sort(key=len, reverse=True)
    regex = re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)
    return [match.span() for match in regex.finditer(text)]
