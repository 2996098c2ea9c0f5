"""An asker at work: it writes answers and questions for passages of the lists, drawn by chance."""

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
from whichsense.train.compact.data.examples import Example
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.synthetic import SyntheticQuestions
from whichsense.train.compact.writer.writing import collated
from whichsense.train.loop.optimizer import to_device

_CHOICES = 40  # tokens that are drawn from, at most
_QUESTION = range(4, 33)  # word pieces
_FIRST = 1.3  # above 1: passages that the search put high are drawn more often
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Making:
    """A recipe's `[made]`: how many questions are drawn, and how."""

    count: int = 320_000
    """Before any are thrown away; fewer where there are fewer passages."""
    temperature: float = 0.9
    nucleus: float = 0.95
    """Tokens are drawn from as few as hold this much of the probability."""
    ways: dict[str, float] = field(
        default_factory=lambda: {"reading": 0.2, "open": 0.45, "exact": 0.35}
    )
    """Shares of the ways of asking; one that nobody was there to learn from is left out."""
    at_once: int = 2048


@dataclass(frozen=True, slots=True)
class _Place:
    """A passage that is asked about."""

    number: int
    slot: int
    row: int
    way: str


def made_questions(
    net: WriterNet, pack: Pack, making: Making, ways: Sequence[str]
) -> SyntheticQuestions:
    """What is written for as many passages, each question once in a list. The same net writes the same again."""
    shares = {way: share for way, share in making.ways.items() if way in ways}
    places = list(_places(pack, making.count, shares))
    chance = torch.Generator(net.out_bias.device).manual_seed(0)
    found: dict[tuple[int, tuple[int, ...]], tuple[int, int, list[int], list[int]]] = {}
    with show_progress("writing questions", "passages") as progress:
        for start in range(0, len(places), making.at_once):
            some = places[start : start + making.at_once]
            for place, tokens in zip(
                some,
                drawn(net, [_prompt(pack, one) for one in some], making, chance),
                strict=True,
            ):
                if (both := parted(tokens)) is not None:
                    found.setdefault(
                        (place.number, tuple(both[1])),
                        (place.number, place.slot, *both),
                    )
            progress((start + len(some)) / len(places), start + len(some))
    return SyntheticQuestions.from_rows(
        list(found.values()), pack.questions.values.dtype
    )


def _places(pack: Pack, count: int, shares: Mapping[str, float]) -> Iterator[_Place]:
    """Each passage once in a way of asking."""
    dice, seen = random.Random(0), set()
    lists = [n for n in range(len(pack)) if len(pack.slots[n])]
    for _ in range(_TRIES * count if lists and sum(shares.values()) > 0 else 0):
        number = dice.choice(lists)
        rows = pack.slots[number]
        slot = int(len(rows) * dice.random() ** _FIRST)
        place = _Place(
            number,
            slot,
            int(rows[slot]),
            dice.choices(list(shares), list(shares.values()))[0],
        )
        if (place.row, place.way) not in seen:
            seen.add((place.row, place.way))
            yield place
        if len(seen) == count:
            return


def _prompt(pack: Pack, place: _Place) -> Prompt:
    window = Window(pack.titles[place.row].tolist(), pack.texts[place.row].tolist())
    return asking(WAYS[place.way], window)


def parted(tokens: list[int]) -> tuple[list[int], list[int]] | None:
    """Answer and question, where both were written.

    >>> parted([7, 1064, 1, 2, 3, 4]), parted([7, 8, 9])
    (([7], [1, 2, 3, 4]), None)
    """
    if tokens.count(BAR) != 1:
        return None
    at = tokens.index(BAR)
    answer, question = tokens[:at], tokens[at + 1 :]
    return (answer, question) if answer and len(question) in _QUESTION else None


@torch.inference_mode()
def drawn(
    net: WriterNet, prompts: Sequence[Prompt], making: Making, chance: torch.Generator
) -> list[list[int]]:
    """What is written behind each prompt, without its end; nothing where it comes to none."""
    device = net.out_bias.device
    batch = to_device(
        collated([Example(prompt, [], []) for prompt in prompts], 1), device
    )
    token, over = (
        batch.written[:, 0],
        torch.zeros(len(prompts), dtype=torch.bool, device=device),
    )
    written: list[Tensor] = []
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        memory = net.begin(batch.ids, batch.kinds, batch.mask)
        for place in range(LONGEST_ASKED):
            states, memory = net.extend(memory, token, place)
            token = _one_of(net.scores(states).float(), making, chance).masked_fill(
                over, PAD
            )
            written.append(token)
            over = over | (token == END)
            if bool(over.all()):
                break
    rows = torch.stack(written, 1).tolist()
    return [row[: row.index(END)] if END in row else [] for row in rows]


def _one_of(scores: Tensor, making: Making, chance: torch.Generator) -> Tensor:
    """A token for each row by its probability, among those that hold nearly all of it together."""
    scores[:, :END] = float("-inf")
    best = (
        (scores / making.temperature)
        .log_softmax(1)
        .topk(min(_CHOICES, scores.shape[1]), dim=1)
    )
    chances = best.values.softmax(1)
    chances = chances.masked_fill(chances.cumsum(1) - chances > making.nucleus, 0)
    return best.indices.gather(1, torch.multinomial(chances, 1, generator=chance))[:, 0]
