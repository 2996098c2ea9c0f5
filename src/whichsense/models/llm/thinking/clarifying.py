"""Asks which reading is meant: after six examples, and again where the form is not kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from whichsense.models.llm.exchange import LLMFault, Reply
from whichsense.models.llm.fences import clean
from whichsense.models.llm.replies import without_thoughts
from whichsense.models.llm.talk import Talk
from whichsense.models.llm.windows import fence_lines
from whichsense.text.clarification import ParsedClarification, parse_clarification
from whichsense.text.function_words import SMALL_WORDS
from whichsense.text.porter import porter_stem
from whichsense.text.words import words
from whichsense.types import Case, Reading

_MOST_TOKENS = 120
_ATTEMPTS = 3
_WARM = 0.7
LONGEST_LABEL = 40
_LONGEST_CATEGORY = 3  # words


def write_clarification(talk: Talk, case: Case) -> ParsedClarification:
    """A clarification in the right form: an option for each reading, in their order, in words that are said of it.
    Raises `LLMFault` where the model keeps giving another form."""
    lines = []
    for number, reading in enumerate(case.readings, 1):
        text = reading.question
        told = reading.told_apart(case.question)
        if told not in ("", text):
            text = f"{text} ({told})"
        lines.append(f"{number}. {clean(text)}")
    for seed in range(_ATTEMPTS):
        request = talk.request(
            "clarify",
            _MOST_TOKENS,
            temperature=_WARM if seed else 0.0,
            seed=seed,
            question=clean(case.question),
            rewrites=fence_lines(lines, "readings"),
            number=str(len(lines)),
        )
        (parsed,) = talk.ask([request], _reader_of(len(lines)))
        if parsed is None or not keeps_form(parsed, len(lines)):
            continue
        pairs = zip(parsed.options, case.readings, strict=True)
        if all(is_of(option, reading) for option, reading in pairs) and tell_apart(
            parsed.options, case.question
        ):
            return parsed
    raise LLMFault(
        f"The language model '{talk.endpoint.model}' wrote no clarification question in the right form."
    )


def _reader_of(count: int) -> Callable[[Reply], ParsedClarification | None]:
    def read(reply: Reply) -> ParsedClarification:
        """Every reply is understood here; its form is looked at by the caller, who asks again."""
        for line in without_thoughts(reply.text).splitlines():
            parsed = parse_clarification(line.strip("*\"' "), expected=count)
            if parsed is not None:
                return parsed
        return ParsedClarification("", ())

    return read


def is_of(option: str, reading: Reading) -> bool:
    """Whether at least half of an option's words are said of its reading: in the rewrite, its label, its source or its
    evidence's title.

    >>> reading = Reading("Who directed the 1996 film Harbour Lights?", "Ida Morrow")
    >>> [is_of(option, reading) for option in ("the 1996 film", "the musical", "in the")]
    [True, False, False]
    """
    titles = [span.passage.title for span in reading.evidence]
    said = " ".join([reading.question, reading.label, reading.source, *titles])
    stems = {porter_stem(word) for word in words(said)}
    own = [word for word in words(option) if word not in SMALL_WORDS]
    shared = sum(porter_stem(word) in stems for word in own)
    return bool(own) and 2 * shared >= len(own)


def tell_apart(options: Sequence[str], question: str) -> bool:
    """Whether every option has a word that the question does not have, or none has: a part of the question beside
    something new names no reading, and looks as if the question had chosen it.

    >>> question = "Who plays Leo Bloom in The Producers?"
    >>> tell_apart(("Leo Bloom", "the 1967 film"), question), tell_apart(("2005", "1967"), question)
    (False, True)
    """
    asked = set(words(question)) | SMALL_WORDS
    says_new = [not set(words(option)) <= asked for option in options]
    return all(says_new) or not any(says_new)


def keeps_form(parsed: ParsedClarification, count: int) -> bool:
    """Whether there are as many options as readings, distinct, short, and without the category, which is a few words.

    >>> keeps_form(ParsedClarification("year", ("2017", "2018")), 2)
    True
    >>> [keeps_form(ParsedClarification("year", options), 2) for options in (("2017",), ("year 2017", "2018"))]
    [False, False]
    >>> keeps_form(ParsedClarification("option sets the reading apart", ("Wyoming", "America")), 2)
    False
    """
    labels = [" ".join(words(option)) for option in parsed.options]
    if len(labels) != count or len(set(labels)) < count:
        return False
    if any(len(option) > LONGEST_LABEL for option in parsed.options):
        return False
    if len(parsed.category.split()) > _LONGEST_CATEGORY:
        return False
    category = set(words(parsed.category)) - {"one"}
    return not any(category & set(label.split()) for label in labels)
