"""The papers' input formats: a question, what goes before it, and passages, as token sequences.

BART, concatenated (AmbigQA):  <s> question </s> title </s> text </s> title </s> text </s> …      up to 1,024 tokens
BART, fused (REFUEL):          <s> question </s> title </s> text </s>                             for each passage
T5, fused:                     question: … title: … context: … </s>                               for each passage
Decoder-only models:           title: text ⏎ title: text ⏎ question                               up to `input_tokens`
Question disambiguation puts `answer <SEP> prompt [<SEP> other answer …]` in the question's place.
ASQA's T5 formats are plain text; `plain` makes them.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace

from whichsense.models.seq2seq.codec import Codec, Form
from whichsense.text.spans import spans_of
from whichsense.types import Hit, Passage

_TOKENIZED_AT_ONCE = 8
Sequences = list[list[int]]
"""The inputs of one question: one sequence, or one for each passage."""


def composed(
    codec: Codec,
    form: Form,
    parts: Sequence[str],
    hits: Sequence[Hit],
    answer: str = "",
) -> Sequences:
    """The inputs for a question (the last of `parts`, or several texts that separators join) over its passages.

    `answer` is what passages are cut around, where the form says so.
    """
    lead = joined(codec, parts)
    if form.around and answer:
        hits = excerpts(hits[: form.passages], answer, form.around)
    passages = [hit.passage for hit in hits[: form.passages]]
    if form.fusion:
        lead = lead[: form.question_tokens]
        if not passages:
            return [_closed(codec, lead, [])]
        return [
            _closed(codec, lead, body[: form.passage_tokens])
            for body in codec.bodies(passages)
        ]
    tokens: list[int] = []
    for body in _fitting(codec, form, len(lead), passages):
        tokens += [*body, *_between(codec)]
    if (
        codec.kind == "causal"
    ):  # the question last: the nearer to what is written, the better it is remembered
        room, between = (
            max(0, form.input_tokens - len(codec.start) - len(lead)),
            _between(codec),
        )
        if len(tokens) > room:
            tokens = (
                [*tokens[: room - len(between)], *between]
                if room > len(between)
                else []
            )
        return [[*codec.start, *tokens, *lead][: form.input_tokens]]
    whole = _closed(codec, lead, tokens)
    return [
        [*whole[: form.input_tokens - 1], codec.end]
        if len(whole) > form.input_tokens
        else whole
    ]


def read_by(
    codec: Codec, form: Form, parts: Sequence[str], hits: Sequence[Hit]
) -> list[Hit]:
    """The hits of which at least a part is in the input: with all in one input, the first few."""
    given = list(hits[: form.passages])
    if form.fusion:
        return given
    lead = len(joined(codec, parts))
    return given[
        : sum(1 for _ in _fitting(codec, form, lead, [hit.passage for hit in given]))
    ]


def _fitting(
    codec: Codec, form: Form, lead: int, passages: Sequence[Passage]
) -> Iterator[array[int]]:
    """Passages while there is room; those behind are not even tokenized."""
    room = form.input_tokens - lead - 3
    for start in range(0, len(passages), _TOKENIZED_AT_ONCE):
        for body in codec.bodies(passages[start : start + _TOKENIZED_AT_ONCE]):
            if room <= 0:
                return
            yield body
            room -= len(body) + 1


def excerpts(hits: Sequence[Hit], answer: str, around: int) -> list[Hit]:
    """Passages that hold an answer, cut to so many words on either side of it; then the beginnings of the others.

    >>> text = "Dune is a novel of 1965 by Frank Herbert, and a film by David Lynch."
    >>> sand, dune = Passage("1", "Sand", "Dunes move."), Passage("2", "Dune", text)
    >>> found = excerpts([Hit(sand, 2.0), Hit(dune, 1.0)], "1965", 2)
    >>> [hit.passage.text for hit in found]
    ['novel of 1965 by Frank', 'Dunes move.']
    """
    places = {
        span.passage.id: (span.start, span.end)
        for span in spans_of(answer, hits, most=len(hits))
    }
    holding: list[Hit] = []
    others: list[Hit] = []
    for hit in hits:
        text = hit.passage.text
        if hit.passage.id in places:
            start, end = places[hit.passage.id]
            before = [word.start() for word in re.finditer(r"\S+", text[:start])][
                -around:
            ]
            behind = [word.end() for word in re.finditer(r"\S+", text[end:])][:around]
            body = text[
                before[0] if before else start : end + (behind[-1] if behind else 0)
            ]
            holding.append(Hit(replace(hit.passage, text=body), hit.score))
        else:
            others.append(
                Hit(
                    replace(hit.passage, text=" ".join(text.split()[: 2 * around])),
                    hit.score,
                )
            )
    return [*holding, *others]


def joined(codec: Codec, parts: Sequence[str]) -> list[int]:
    """Texts with separators between them, as one sequence of tokens."""
    tokens: list[int] = codec.ids("question: ") if codec.kind == "t5" else []
    for number, ids in enumerate(codec.all_ids(parts)):
        tokens += ([codec.separator] if number else []) + ids
    return tokens


def rewriter_parts(
    question: str,
    answer: str,
    others: Sequence[str],
    *,
    prompt: bool = True,
    with_others: bool = True,
) -> list[str]:
    """What a rewriter reads before the passages: the answer first, as in both papers' code.

    Without `prompt` or `with_others` they are AmbigQA's ablations (table 4); without both, question generation.

    >>> rewriter_parts("Who won?", "Ann", ["Bob"])
    ['Ann', 'Who won?', 'Bob']
    """
    return [answer, *([question] if prompt else []), *(others if with_others else [])]


def clarifier_parts(question: str, answers: Sequence[str]) -> list[str]:
    """CAmbigNQ's "AQ [SEP] possible_answers [SEP] relevant_passages"; without answers, "AQ [SEP] relevant_passages".

    >>> clarifier_parts("Who won?", ["Ann", "Bob"])
    ['Who won?', 'Ann, Bob']
    """
    return [question, ", ".join(answers)] if answers else [question]


def plain(codec: Codec, text: str, limit: int) -> Sequences:
    """A text as it stands."""
    end = [] if codec.kind == "causal" else [codec.end]
    return [
        [*codec.start, *codec.ids(text)[: limit - len(end) - len(codec.start)], *end]
    ]


def _between(codec: Codec) -> list[int]:
    if codec.kind == "causal":
        return codec.ids("\n")
    return [codec.end] if codec.kind == "bart" else []


def _closed(codec: Codec, lead: list[int], body: Sequence[int]) -> list[int]:
    """Start, question, passages, end; one end only where the body closes itself."""
    tokens = [*codec.start, *lead, *(_between(codec) if body else []), *body]
    return tokens if tokens[-1:] == [codec.end] else [*tokens, codec.end]
