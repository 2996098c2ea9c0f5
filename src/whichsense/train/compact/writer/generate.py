"""Synthetic questions: the trained asker writes answers and questions for passages of the lists, drawn at random."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from whichsense.jobs.progress import show_progress
from whichsense.models.compact.encoder.tokens import END, PAD
from whichsense.models.compact.writer.net import WriterNet
from whichsense.models.compact.writer.prompts import (
    BAR,
    LONGEST_ASKED,
    WAYS,
    Prompt,
    Window,
    asking,
)
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.synthetic import SyntheticQuestions
from whichsense.train.compact.writer.base_task import collate
from whichsense.train.compact.writer.rewrite_examples import Example
from whichsense.train.loop.optimizer import to_device

_TOP_TOKENS = 40  # that a token is drawn from, at most
_QUESTION_SIZES = range(4, 33)  # word pieces
_RANK_POWER = 1.3  # above 1: passages that the search ranked high are drawn more often
_TRIES = 20  # for each passage: it may have been drawn before


@dataclass(frozen=True, slots=True)
class QuestionGeneration:
    """A recipe's `[made]`: how many questions are generated, and how."""

    count: int = 320_000
    """Before any are dropped; fewer if there are fewer passages."""
    temperature: float = 0.9
    nucleus: float = 0.95
    """Tokens are drawn from the fewest that hold this much of the probability."""
    ways: dict[str, float] = field(
        default_factory=lambda: {"reading": 0.2, "open": 0.45, "exact": 0.35}
    )
    """Shares of the ways of asking; one that was not learnt is left out."""
    at_once: int = 2048
    """Passages of a batch."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A passage to be asked about, and in which way."""

    number: int
    slot: int
    row: int
    way: str


def generate_questions(
    net: WriterNet, pack: Pack, generation: QuestionGeneration, ways: Sequence[str]
) -> SyntheticQuestions:
    """Questions for passages drawn at random, each once in a list. The same network writes the same questions again."""
    shares = {}
    for way, share in generation.ways.items():
        if way in ways:
            shares[way] = share
    places = list(_draw_places(pack, generation.count, shares))
    rng = torch.Generator(net.out_bias.device).manual_seed(0)
    # Keyed by list and question: (list, slot, answer, question)
    rows: dict[object, tuple[int, int, list[int], list[int]]] = {}
    with show_progress("writing questions", "passages") as progress:
        for start in range(0, len(places), generation.at_once):
            part = places[start : start + generation.at_once]
            prompts = [_prompt(pack, place) for place in part]
            outputs = sample_outputs(net, prompts, generation, rng)
            for place, tokens in zip(part, outputs, strict=True):
                parts = split_output(tokens)
                if parts is not None:
                    answer, question = parts
                    row = (place.number, place.slot, answer, question)
                    # The first passage that a question was written for keeps it.
                    rows.setdefault((place.number, tuple(question)), row)
            done = start + len(part)
            progress(done / len(places), done)
    dtype = pack.questions.values.dtype
    return SyntheticQuestions.from_rows(list(rows.values()), dtype)


def _draw_places(
    pack: Pack, count: int, shares: Mapping[str, float]
) -> Iterator[_Place]:
    """Each passage at most once in a way of asking."""
    rng = random.Random(0)
    ways = list(shares)
    weights = list(shares.values())
    lists = [number for number in range(len(pack)) if len(pack.slots[number])]
    if not lists or not sum(weights) > 0:
        return
    seen = set()
    for _ in range(_TRIES * count):
        number = rng.choice(lists)
        rows = pack.slots[number]
        slot = int(len(rows) * rng.random() ** _RANK_POWER)
        way = rng.choices(ways, weights)[0]
        place = _Place(number, slot, int(rows[slot]), way)
        # A passage may be in many lists.
        if (place.row, way) not in seen:
            seen.add((place.row, way))
            yield place
        if len(seen) == count:
            return


def _prompt(pack: Pack, place: _Place) -> Prompt:
    title, text = pack.passage(place.row)
    return asking(WAYS[place.way], Window(title, text))


def split_output(tokens: list[int]) -> tuple[list[int], list[int]] | None:
    """Answer and question, if both were written.

    >>> split_output([7, 1064, 1, 2, 3, 4]), split_output([7, 8, 9])
    (([7], [1, 2, 3, 4]), None)
    """
    if tokens.count(BAR) != 1:
        return None
    bar = tokens.index(BAR)
    answer = tokens[:bar]
    question = tokens[bar + 1 :]
    if not answer or len(question) not in _QUESTION_SIZES:
        return None
    return answer, question


@torch.inference_mode()
def sample_outputs(
    net: WriterNet,
    prompts: Sequence[Prompt],
    generation: QuestionGeneration,
    rng: torch.Generator,
) -> list[list[int]]:
    """What is written after each prompt, without its end; empty if it does not end."""
    device = net.out_bias.device
    examples = [Example(prompt, [], []) for prompt in prompts]
    batch = to_device(collate(examples, 1), device)
    token = batch.written[:, 0]
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    outputs: list[Tensor] = []
    on_gpu = device.type == "cuda"
    with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
        memory = net.begin(batch.ids, batch.kinds, batch.mask)
        for place in range(LONGEST_ASKED):
            states, memory = net.extend(memory, token, place)
            token = _sample_tokens(net.scores(states).float(), generation, rng)
            token = token.masked_fill(ended, PAD)
            outputs.append(token)
            ended = ended | (token == END)
            if bool(ended.all()):
                break
    texts: list[list[int]] = []
    for row in torch.stack(outputs, 1).tolist():
        texts.append(row[: row.index(END)] if END in row else [])
    return texts


def _sample_tokens(
    scores: Tensor, generation: QuestionGeneration, rng: torch.Generator
) -> Tensor:
    """A token for each row (rows × vocabulary), by nucleus sampling."""
    scores[:, :END] = float("-inf")  # special tokens
    logs = (scores / generation.temperature).log_softmax(1)
    best = logs.topk(min(_TOP_TOKENS, scores.shape[1]), dim=1)
    probabilities = best.values.softmax(1)
    before = probabilities.cumsum(1) - probabilities
    probabilities = probabilities.masked_fill(before > generation.nucleus, 0)
    chosen = torch.multinomial(probabilities, 1, generator=rng)
    return best.indices.gather(1, chosen)[:, 0]
