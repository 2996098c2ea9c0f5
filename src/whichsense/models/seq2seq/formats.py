"""Inputs and outputs of sequence-to-sequence models: formats, tokens, passages in one input or several."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from whichsense.errors import BadInput
from whichsense.text.words import spans_of
from whichsense.types import Hit, Passage, frozen

# ASQA's inputs for T5, as its figures 4 and 5 print them, and CAmbigNQ's clarified question.


@frozen
class SourceText:
    """A text and the title of its page."""

    text: str
    title: str


def _listed(sources: Sequence[SourceText]) -> str:
    texts = [f"info: {source.text} wikipedia: {source.title}" for source in sources]
    return " | ".join(texts)


def closed_book(question: str) -> str:
    """T5-C: the question alone."""
    return question


def open_book(question: str, sources: Sequence[SourceText]) -> str:
    """T5-O-K.

    >>> open_book("Who won?", [SourceText("Ann won.", "Race"), SourceText("Bob lost.", "Bob")])
    'Who won? context: info: Ann won. wikipedia: Race | info: Bob lost. wikipedia: Bob'
    """
    return f"{question} context: {_listed(sources)}"


def oracle(
    question: str,
    answers: Sequence[str],
    rewrites: Sequence[str],
    contexts: Sequence[SourceText],
    knowledge: Sequence[SourceText],
) -> str:
    """ORACLE: everything that annotators saw.

    >>> oracle("Who won?", ["Ann"], ["Who won in 2012?"], [SourceText("Ann won.", "Race")], [])
    'Who won? answers: Ann disambiguations: Who won in 2012? context1: info: Ann won. wikipedia: Race context2: '
    """
    readings = f"answers: {' | '.join(answers)} disambiguations: {' | '.join(rewrites)}"
    evidence = f"context1: {_listed(contexts)} context2: {_listed(knowledge)}"
    return f"{question} {readings} {evidence}"


def clarified(question: str, category: str, option: str) -> str:
    """Return an ambiguous question with one option of its clarification question (CAmbigNQ, section 3.3).

    >>> clarified("Who won the race?", "year", "2012")
    'Who won the race?, Which year: 2012'
    """
    return f"{question}, Which {category}: {option}"


# Text to tokens and back, for every family, with one extra token that separates answers.

SEPARATOR = "<SEP>"
_CACHE_SIZE = 50_000  # passages: about 30 MB


@frozen
class InputForm:
    """The form of inputs and outputs. The defaults are REFUEL's: 100 passages of 32 + 128 tokens."""

    fusion: bool = True
    """Each passage with the question (Fusion-in-Decoder), or all in one input, truncated to `input_tokens`."""
    passages: int = 100
    question_tokens: int = 32
    """Of the question, with the answers before it, in each fused input."""
    passage_tokens: int = 128
    """Of a passage with its title, in each fused input."""
    input_tokens: int = 1024
    """Of a concatenated input, as in AmbigQA: the most that BART reads."""
    around: int = 0
    """Words on either side of a rewriter's answer to which passages are cut. Passages with the answer come first, and
    others are cut to the same length. 0: whole passages, in their order."""
    output_tokens: int = 30
    """Of an output, as in AmbigQA's code; longer targets are truncated in training."""
    lowercase: bool = False
    """Both papers' code lowercases questions, passages and answers."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < (1 if name.endswith("_tokens") else 0):
                raise BadInput(f"The form's {name} cannot be {value}.")


@dataclass(frozen=True)
class Codec:
    """A tokenizer with the special tokens of inputs and outputs."""

    tokenizer: Any
    kind: Literal["bart", "t5", "causal"]
    lowercase: bool = False
    _bodies: dict[Passage, array[int]] = field(default_factory=dict, repr=False, compare=False)

    def bodies(self, passages: Sequence[Passage]) -> list[array[int]]:
        """Return the tokens of passages with their titles. They are cached: several stages read the same ones."""
        known = {one: body for one in passages if (body := self._bodies.get(one)) is not None}
        new = [one for one in dict.fromkeys(passages) if one not in known]
        titles = self.all_ids([one.title for one in new])
        texts = self.all_ids([one.text for one in new])
        if len(self._bodies) + len(new) > _CACHE_SIZE:
            self._bodies.clear()
        for passage, title, text in zip(new, titles, texts, strict=True):
            body = array("i", self._body(title, text))
            known[passage] = self._bodies[passage] = body
        return [known[passage] for passage in passages]

    def _body(self, title: list[int], text: list[int]) -> list[int]:
        if self.kind == "bart":
            return [*title, self.end, *text]
        if self.kind == "causal":
            return [*title, *self.ids(": "), *text]
        return [*self.ids(" title: "), *title, *self.ids(" context: "), *text]

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a text, without special ones."""
        ids: list[int] = self.tokenizer.encode(self._plain(text), add_special_tokens=False)
        return ids

    def all_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Do the same for many, in one call of the tokenizer."""
        if not texts:
            return []
        plain = list(map(self._plain, texts))
        encoded = self.tokenizer(plain, add_special_tokens=False, verbose=False)
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def _plain(self, text: str) -> str:
        return text.lower() if self.lowercase else text

    def text(self, ids: Iterable[int]) -> str:
        """Return an output as text; the separator stays visible."""
        silent = self._silent
        visible = [token for token in ids if token not in silent]
        text = self.tokenizer.decode(
            visible, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return str(text).strip()

    def texts(self, ids: Iterable[int]) -> list[str]:
        """Return the parts of an output between separators, each once, in order."""
        parts: list[list[int]] = [[]]
        for token in ids:
            if token == self.separator:
                parts.append([])
            else:
                parts[-1].append(token)
        texts = dict.fromkeys(map(self.text, parts))
        texts.pop("", None)
        return list(texts)

    def target(self, texts: Sequence[str], limit: int) -> list[int]:
        """The target of texts: their tokens with separators between them, and the end, truncated to `limit` tokens."""
        tokens = list(self.lead)
        for number, part in enumerate(self.all_ids(texts)):
            if number:
                tokens.append(self.separator)
            tokens += part
        return [*tokens[: limit - 1], self.end]

    @property
    def lead(self) -> list[int]:
        """The first tokens of every output: BART's have a start token of their own behind the decoder's."""
        return [int(self.tokenizer.bos_token_id)] if self.kind == "bart" else []

    @cached_property
    def start(self) -> list[int]:
        """The first tokens of every input. Of decoder-only models, only some tokenizers add one."""
        if self.kind != "causal" or self.tokenizer.bos_token_id is None:
            return self.lead
        start = self.tokenizer.bos_token_id
        return [int(start)] if start in self.tokenizer("a")["input_ids"][:1] else []

    @property
    def end(self) -> int:
        return int(self.tokenizer.eos_token_id)

    @property
    def separator(self) -> int:
        return int(self.tokenizer.convert_tokens_to_ids(SEPARATOR))

    @property
    def _silent(self) -> set[int]:
        return set(self.tokenizer.all_special_ids) - {self.separator}


# The papers' input formats: a question, what goes before it, and passages, as token sequences.
#
# BART, concatenated (AmbigQA):  <s> question </s> title </s> text </s> title </s> text </s> …      up to 1,024 tokens
# BART, fused (REFUEL):          <s> question </s> title </s> text </s>                             for each passage
# T5, fused:                     question: … title: … context: … </s>                               for each passage
# Decoder-only models:           title: text ⏎ title: text ⏎ question                               up to `input_tokens`
# Question disambiguation puts `answer <SEP> prompt [<SEP> other answer …]` in the question's place.
# ASQA's T5 formats are plain text (`plain`).

_TOKENIZED_AT_ONCE = 8
TokenSequences = list[list[int]]
"""The inputs of one question: one sequence, or one for each passage."""


def composed(
    codec: Codec, form: InputForm, parts: Sequence[str], hits: Sequence[Hit], answer: str = ""
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
    """Return one input for each passage, or one without a passage."""
    if not passages:
        return [_closed(codec, lead, [])]
    return [_closed(codec, lead, body[: form.passage_tokens]) for body in codec.bodies(passages)]


def _continued(codec: Codec, form: InputForm, lead: list[int], passages: list[int]) -> list[int]:
    """Return the input of a decoder-only model, with the question last: it attends best to what is near."""
    between = _between(codec)
    room = max(0, form.input_tokens - len(codec.start) - len(lead))
    if len(passages) > room:
        end = room - len(between)
        passages = [*passages[:end], *between] if end > 0 else []
    return [*codec.start, *passages, *lead][: form.input_tokens]


def read_by(codec: Codec, form: InputForm, parts: Sequence[str], hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that are in the input, at least in part: of a concatenated input the first few."""
    given = list(hits[: form.passages])
    if form.fusion:
        return given
    lead = len(joined(codec, parts))
    count = len(list(_fitting(codec, form, lead, [hit.passage for hit in given])))
    return given[:count]


def _fitting(
    codec: Codec, form: InputForm, lead: int, passages: Sequence[Passage]
) -> Iterator[array[int]]:
    """Yield the tokens of passages while there is room. The rest is not tokenized."""
    room = form.input_tokens - lead - 3
    for start in range(0, len(passages), _TOKENIZED_AT_ONCE):
        for body in codec.bodies(passages[start : start + _TOKENIZED_AT_ONCE]):
            if room <= 0:
                return
            yield body
            room -= len(body) + 1


def _excerpts(hits: Sequence[Hit], answer: str, around: int) -> list[Hit]:
    """Return passages with an answer, cut to so many words on either side of it; then the beginnings of the others.

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
    """Return a span with so many words on either side of it."""
    before = [word.start() for word in re.finditer(r"\S+", text[:start])]
    behind = [word.end() for word in re.finditer(r"\S+", text[end:])]
    first = before[-around:][0] if before else start
    last = end + behind[:around][-1] if behind else end
    return text[first:last]


def joined(codec: Codec, parts: Sequence[str]) -> list[int]:
    """Return the tokens of texts with separators between them."""
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
    """Return the texts that a rewriter reads before the passages: the answer first, as in both papers' code.

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
    """Return the input of a plain text, truncated to `limit` tokens."""
    end = [] if codec.kind == "causal" else [codec.end]
    room = limit - len(end) - len(codec.start)
    return [[*codec.start, *codec.ids(text)[:room], *end]]


def _between(codec: Codec) -> list[int]:
    """Return the separator behind each passage, and between question and passages."""
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
