"""Cases with readings, as the stages before leave them."""

from __future__ import annotations

from whichsense.types import Case, Hit, Passage, Reading, Span


def reading(question: str, answer: str, title: str, text: str, source: str = "") -> Reading:
    """A reading whose evidence is the first place of the answer in one passage."""
    passage = Passage(f"{title}-{len(text)}", title, text)
    start = text.find(answer)
    span = Span(passage, max(start, 0), start + len(answer) if start >= 0 else 0)
    return Reading(question, answer, (span,), 0.9, source)


def case(question: str, *readings: Reading) -> Case:
    hits = tuple(Hit(span.passage, 1.0) for one in readings for span in one.evidence)
    return Case(question, hits=hits, readings=tuple(readings))


JOKERS = (
    reading(
        "Who played the Joker in the 2008 film The Dark Knight?",
        "Heath Ledger",
        "The Dark Knight (film)",
        "The Dark Knight is a 2008 film by Christopher Nolan. Heath Ledger played the Joker. He died before the film "
        "was finished and was given an Academy Award for the part.",
    ),
    reading(
        "Who played the Joker in the 1989 film Batman?",
        "Jack Nicholson",
        "Batman (1989 film)",
        "Batman is a 1989 film directed by Tim Burton. It was shot at Pinewood Studios in England. Jack Nicholson "
        "played the Joker, a gangster who falls into a vat of chemicals.",
    ),
    reading(
        "Who played the Joker in the 1960s television series Batman?",
        "Cesar Romero",
        "Batman (1960s television series)",
        "ABC showed the television series Batman from 1966 to 1968. Cesar Romero played the Joker in the series and "
        "refused to shave off his moustache.",
    ),
)
