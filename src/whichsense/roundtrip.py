"""Round-trip prediction (REFUEL, section 2.3): ask the rewrites again, and take in answers that come up only then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from whichsense.stages import Disambiguator, Reader
from whichsense.text import normalize
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
    answers = list(reader.read(question, hits))
    readings = disambiguator.disambiguate(question, answers, hits)
    known = {normalize(one.answer) for one in answers}
    asked = {_key(question)}
    for _ in range(rounds):
        rewrites = [one.question for one in readings if _key(one.question) not in asked]
        asked.update(map(_key, rewrites))
        new = _new_answers((reader.read(rewrite, hits) for rewrite in dict.fromkeys(rewrites)), known, most)
        if not new:
            break
        answers += new
        # All answers go in, as a rewrite must set its answer apart from every other; only the new ones are taken.
        fresh = {normalize(one.answer) for one in new}
        again = disambiguator.disambiguate(question, answers, hits)
        if len(readings) == 1:  # what was the only answer has stood for the question itself until now
            readings = [one for one in again if normalize(one.answer) not in fresh] or readings
        readings = [*readings, *(one for one in again if normalize(one.answer) in fresh)]
    return readings


def _new_answers(found: Iterable[Sequence[Candidate]], known: set[str], most: int) -> list[Candidate]:
    """Those that are not known, each once; they are known from then on."""
    new: list[Candidate] = []
    for candidate in (one for several in found for one in several):
        form = normalize(candidate.answer)
        if form not in known and len(known) < most:
            known.add(form)
            new.append(candidate)
    return new


def _key(question: str) -> str:
    return " ".join(question.lower().split())
