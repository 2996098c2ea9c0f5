"""The papers' input formats: a question, what goes before it, and passages, as token sequences.

BART, concatenated (AmbigQA):  <s> question </s> title </s> text </s> title </s> text </s> …      up to 1,024 tokens
BART, fused (REFUEL):          <s> question </s> title </s> text </s>                             for each passage
T5, fused:                     question: … title: … context: … </s>                               for each passage
Decoder-only models:           title: text ⏎ title: text ⏎ question                               up to `input_tokens`
Question disambiguation puts `answer <SEP> prompt [<SEP> other answer …]` in the question's place.
ASQA's T5 formats are plain text (`plain`).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace

from whichsense.models.seq2seq.codec import Codec, InputForm
from whichsense.text.spans import spans_of
from whichsense.types import Hit, Passage

_TOKENIZED_AT_ONCE = 8
TokenSequences = list[list[int]]
"""The inputs of one question: one sequence, or one for each passage."""


def composed(
    codec: Codec,
    form: InputForm,
    parts: Sequence[str],
    hits: Sequence[Hit],
    answer: str = "",
) -> TokenSequences:
    """The inputs for a question with its passages. `parts` are the question, or several texts to join by separators.

    If the form has `around`, passages are cut around `answer`.
    """
    lead = joined(codec, parts)
    if form.around and answer:
        hits = _excerpts(hits[: form.passages], answer, form.around)
    passages = [hit.passage for hit in hits[: form.passages]]
    if form.fusion:
        return _fused(codec, form, lead[: form.question_tokens], passages)
    tokens: list[int] = []
    for body in _fitting(codec, form, len(lead), passages):
        tokens += [*body, *_between(codec)]
    if codec.kind == "causal":
        return [_continued(codec, form, lead, tokens)]
    whole = _closed(codec, lead, tokens)
    if len(whole) > form.input_tokens:
        whole = [*whole[: form.input_tokens - 1], codec.end]
    return [whole]


def _fused(
    codec: Codec, form: InputForm, lead: list[int], passages: Sequence[Passage]
) -> TokenSequences:
    """One input for each passage, or one without a passage."""
    if not passages:
        return [_closed(codec, lead, [])]
    inputs = []
    for body in codec.bodies(passages):
        inputs.append(_closed(codec, lead, body[: form.passage_tokens]))
    return inputs


def _continued(
    codec: Codec, form: InputForm, lead: list[int], passages: list[int]
) -> list[int]:
    """The input of a decoder-only model, with the question last: it attends best to what is near."""
    between = _between(codec)
    room = max(0, form.input_tokens - len(codec.start) - len(lead))
    if len(passages) > room:
        end = room - len(between)
        passages = [*passages[:end], *between] if end > 0 else []
    return [*codec.start, *passages, *lead][: form.input_tokens]


def read_by(
    codec: Codec, form: InputForm, parts: Sequence[str], hits: Sequence[Hit]
) -> list[Hit]:
    """The hits that are in the input, at least in part: of a concatenated input the first few."""
    given = list(hits[: form.passages])
    if form.fusion:
        return given
    lead = len(joined(codec, parts))
    passages = [hit.passage for hit in given]
    count = len(list(_fitting(codec, form, lead, passages)))
    return given[:count]


def _fitting(
    codec: Codec, form: InputForm, lead: int, passages: Sequence[Passage]
) -> Iterator[array[int]]:
    """The tokens of passages while there is room. The rest is not tokenized."""
    room = form.input_tokens - lead - 3
    for start in range(0, len(passages), _TOKENIZED_AT_ONCE):
        for body in codec.bodies(passages[start : start + _TOKENIZED_AT_ONCE]):
            if room <= 0:
                return
            yield body
            room -= len(body) + 1


def _excerpts(hits: Sequence[Hit], answer: str, around: int) -> list[Hit]:
    """Passages with an answer, cut to so many words on either side of it; then the beginnings of the others.

    >>> text = "Dune is a novel of 1965 by Frank Herbert, and a film by David Lynch."
    >>> sand, dune = Passage("1", "Sand", "Dunes move."), Passage("2", "Dune", text)
    >>> found = _excerpts([Hit(sand, 2.0), Hit(dune, 1.0)], "1965", 2)
    >>> [hit.passage.text for hit in found]
    ['novel of 1965 by Frank', 'Dunes move.']
    """
    span_of = {span.passage.id: span for span in spans_of(answer, hits, most=len(hits))}
    holding: list[Hit] = []
    others: list[Hit] = []
    for hit in hits:
        text = hit.passage.text
        span = span_of.get(hit.passage.id)
        if span is not None:
            body = _cut_around(text, span.start, span.end, around)
            holding.append(Hit(replace(hit.passage, text=body), hit.score))
        else:
            body = " ".join(text.split()[: 2 * around])
            others.append(Hit(replace(hit.passage, text=body), hit.score))
    return [*holding, *others]


def _cut_around(text: str, start: int, end: int, around: int) -> str:
    """A span with so many words on either side of it."""
    before = [word.start() for word in re.finditer(r"\S+", text[:start])]
    behind = [word.end() for word in re.finditer(r"\S+", text[end:])]
    first = before[-around:][0] if before else start
    last = end + behind[:around][-1] if behind else end
    return text[first:last]


def joined(codec: Codec, parts: Sequence[str]) -> list[int]:
    """The tokens of texts with separators between them."""
    tokens: list[int] = codec.ids("question: ") if codec.kind == "t5" else []
    for number, ids in enumerate(codec.all_ids(parts)):
        if number:
            tokens.append(codec.separator)
        tokens += ids
    return tokens


def rewriter_parts(
    question: str,
    answer: str,
    others: Sequence[str],
    *,
    prompt: bool = True,
    with_others: bool = True,
) -> list[str]:
    """The texts that a rewriter reads before the passages: the answer first, as in both papers' code.

    Without `prompt` or `with_others` they are AmbigQA's ablations (table 4); without both, question generation.

    >>> rewriter_parts("Who won?", "Ann", ["Bob"])
    ['Ann', 'Who won?', 'Bob']
    """
    parts = [answer]
    if prompt:
        parts.append(question)
    if with_others:
        parts += others
    return parts


def clarifier_parts(question: str, answers: Sequence[str]) -> list[str]:
    """CAmbigNQ's "AQ [SEP] possible_answers [SEP] relevant_passages"; without answers, "AQ [SEP] relevant_passages".

    >>> clarifier_parts("Who won?", ["Ann", "Bob"])
    ['Who won?', 'Ann, Bob']
    """
    return [question, ", ".join(answers)] if answers else [question]


def plain(codec: Codec, text: str, limit: int) -> TokenSequences:
    """The input of a plain text, truncated to `limit` tokens."""
    end = [] if codec.kind == "causal" else [codec.end]
    room = limit - len(end) - len(codec.start)
    return [[*codec.start, *codec.ids(text)[:room], *end]]


def _between(codec: Codec) -> list[int]:
    """The separator behind each passage, and between question and passages."""
    if codec.kind == "causal":
        return codec.ids("\n")
    return [codec.end] if codec.kind == "bart" else []


def _closed(codec: Codec, lead: list[int], body: Sequence[int]) -> list[int]:
    """Start, question, passages, end. A body that has its own end gets no second one."""
    tokens = [*codec.start, *lead]
    if body:
        tokens += [*_between(codec), *body]
    if tokens[-1:] != [codec.end]:
        tokens.append(codec.end)
    return tokens
