"""Round-trip prediction (REFUEL, section 2.3): ask the rewrites again, and take in answers that come up only then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whichsense.protocols import Disambiguator, Reader
from whichsense.text.words import normalize
from whichsense.types import Candidate, Case, Reading

MOST_ANSWERS = 20
"""A reader that always finds another answer must not go on for ever."""


def keep_distinct_answers(cases: Sequence[Case], most: int = MOST_ANSWERS) -> list[Case]:
    """Return the first of the answers that have the same normal form, and at most so many."""
    return [replace(case, answers=tuple(_merge((), case.answers, most))) for case in cases]


@dataclass(frozen=True)
class RoundTrip:
    """Around any reader and disambiguator: asks rewrites again until no new answer appears.

    Each round asks the reader every rewrite that it has not been asked, over the same
    passages. New answers get a rewrite of the question too. No rewrite is asked twice
    and there are at most `rounds` rounds, so it ends.
    """

    reader: Reader
    disambiguator: Disambiguator
    rounds: int
    most: int = MOST_ANSWERS

    def ask_again(self, cases: Sequence[Case]) -> list[Case]:
        """Return cases that have the readings of a first pass with more of them, in the same order."""
        current = list(cases)
        asked = [{_key(case.question)} for case in cases]
        for _ in range(self.rounds):
            # (which case, one of its rewrites that the reader has not seen)
            rewrites = [
                (place, rewrite)
                for place, case in enumerate(current)
                for rewrite in _unasked(case, asked[place])
            ]
            if not rewrites:
                break
            self._take_answers(current, rewrites)
        return current

    def _take_answers(self, current: list[Case], rewrites: Sequence[tuple[int, str]]) -> None:
        """Read the rewrites, and rewrite the cases that got a new answer, in place."""
        questions = [current[place].with_question(rewrite) for place, rewrite in rewrites]
        before = {place: current[place].answers for place, _ in rewrites}
        for (place, _), read in zip(rewrites, self.reader.read(questions), strict=True):
            case = current[place]
            merged = tuple(_merge(case.answers, read.answers, self.most))
            current[place] = replace(case, answers=merged)
        grown = [
            place for place, answers in before.items() if len(current[place].answers) > len(answers)
        ]
        # All answers go in, as a rewrite must set its answer apart from every other.
        cases = [current[place] for place in grown]
        rewritten = self.disambiguator.disambiguate(cases)
        for place, case in zip(grown, rewritten, strict=True):
            current[place] = _add_readings(current[place], case, before[place])


def _add_readings(case: Case, rewritten: Case, before: Sequence[Candidate]) -> Case:
    """Return the readings that were there, and those of the new answers. What was the only answer is rewritten as
    well: it is no longer the question. What was merely possible joins the readings if it is probable now.
    """
    known = {normalize(candidate.answer) for candidate in before}
    known -= {normalize(reading.answer) for reading in case.possible}
    old: list[Reading] = []
    new: list[Reading] = []
    for reading in rewritten.readings:
        is_known = normalize(reading.answer) in known
        (old if is_known else new).append(reading)
    stay = list(case.readings)
    if len(stay) == 1:
        stay = old or stay
    readings = (*stay, *new)
    given = {normalize(reading.answer) for reading in readings}
    possible = [reading for reading in rewritten.possible if normalize(reading.answer) not in given]
    return replace(rewritten, readings=readings, possible=tuple(possible))


def _unasked(case: Case, asked: set[str]) -> list[str]:
    """Return rewrites that the reader has not seen, each once; from now on it has."""
    new = []
    for reading in case.readings:
        key = _key(reading.question)
        if key not in asked:
            asked.add(key)
            new.append(reading.question)
    return new


def _merge(answers: Sequence[Candidate], more: Sequence[Candidate], most: int) -> list[Candidate]:
    """Return answers, and those of `more` whose normal form is new, up to `most` in all."""
    merged = list(answers)
    known = {normalize(candidate.answer) for candidate in answers}
    for candidate in more:
        form = normalize(candidate.answer)
        if form not in known and len(known) < most:
            known.add(form)
            merged.append(candidate)
    return merged


def _key(question: str) -> str:
    return " ".join(question.lower().split())
