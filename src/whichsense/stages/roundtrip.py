"""Round-trip prediction (REFUEL, section 2.3): ask the rewrites again, and take in answers that come up only then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from whichsense.many import disambiguate_all, read_all
from whichsense.protocols import Disambiguator, Reader
from whichsense.text.words import normalize
from whichsense.types import Candidate, Hit, Reading

MOST_ANSWERS = 20
"""Beyond these no more are looked for: a reader that always finds another answer must not go on for ever."""


def round_trip(
    question: str,
    hits: Sequence[Hit],
    reader: Reader,
    disambiguator: Disambiguator,
    *,
    rounds: int,
    most: int = MOST_ANSWERS,
) -> list[Reading]:
    """Readings from any reader and any disambiguator, until no new answer appears: first those of the first pass.

    Each round asks the reader every rewrite that it has not been asked, over the same passages. Answers that are new
    get a rewrite of the question too. No rewrite is asked twice, and there are at most `rounds` rounds, so it ends.
    """
    return round_trips(
        [question], [hits], reader, disambiguator, rounds=rounds, most=most
    )[0]


def round_trips(
    questions: Sequence[str],
    hits: Sequence[Sequence[Hit]],
    reader: Reader,
    disambiguator: Disambiguator,
    *,
    rounds: int,
    most: int = MOST_ANSWERS,
) -> list[list[Reading]]:
    """The same for many questions, each round of all of them in one call of each stage that can."""
    trips = [
        _Trip(question, seen) for question, seen in zip(questions, hits, strict=True)
    ]
    for trip, found in zip(trips, read_all(reader, questions, hits), strict=True):
        trip.take(found, most)
    _rewrite(trips, disambiguator)
    for _ in range(rounds):
        asked = [(trip, rewrite) for trip in trips for rewrite in trip.unasked()]
        if not asked:
            break
        again = read_all(
            reader, [rewrite for _, rewrite in asked], [trip.hits for trip, _ in asked]
        )
        new = [
            trip
            for (trip, _), answers in zip(asked, again, strict=True)
            if trip.take(answers, most)
        ]
        _rewrite(list({id(trip): trip for trip in new}.values()), disambiguator)
    return [trip.readings for trip in trips]


@dataclass
class _Trip:
    """One question on its way."""

    question: str
    hits: Sequence[Hit]
    answers: list[Candidate] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    fresh: set[str] = field(default_factory=set)
    """Answers that have no reading yet."""
    known: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.asked.add(_key(self.question))

    def unasked(self) -> list[str]:
        """Rewrites that the reader has not seen, each once; from now on it has."""
        new = {
            _key(one.question): one.question
            for one in self.readings
            if _key(one.question) not in self.asked
        }
        self.asked.update(new)
        return list(new.values())

    def take(self, found: Sequence[Candidate], most: int) -> bool:
        """Take in the answers that are new; whether there are any."""
        before = len(self.answers)
        for candidate in found:
            form = normalize(candidate.answer)
            if form not in self.known and len(self.known) < most:
                self.known.add(form)
                self.fresh.add(form)
                self.answers.append(candidate)
        return len(self.answers) > before

    def add(self, readings: Sequence[Reading]) -> None:
        """Readings of all answers: only the new ones are taken; what was the only answer is no longer the question."""
        if len(self.readings) == 1:
            self.readings = [
                one for one in readings if normalize(one.answer) not in self.fresh
            ] or self.readings
        self.readings += [
            one for one in readings if normalize(one.answer) in self.fresh
        ]
        self.fresh.clear()


def _rewrite(trips: Sequence[_Trip], disambiguator: Disambiguator) -> None:
    """All answers go in, as a rewrite must set its answer apart from every other."""
    found = disambiguate_all(
        disambiguator,
        [trip.question for trip in trips],
        [trip.answers for trip in trips],
        [trip.hits for trip in trips],
    )
    for trip, readings in zip(trips, found, strict=True):
        trip.add(readings)


def _key(question: str) -> str:
    return " ".join(question.lower().split())
