"""What is checked in a form, as it is typed and when it is submitted: rules, each with its reason in plain words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from whichsense.text.clarification import compose_question, parse_clarification
from whichsense.text.words import normalize

Value = Mapping[str, Any]
Check = Callable[[Value, Value], Iterator["Finding"]]
"""(the item, what was written) → what is wrong with it."""
_LONGEST_ANSWER = 20  # words, as AmbigNQ's page warns
_FEWEST_REASON = 4  # words of a reason
_LEAD = re.compile(r"(?:\w+ (?:of |a |an |the )?)?(?:which|what)\s+\S", re.IGNORECASE)
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong in a form. An error keeps it from being submitted, a warning does not."""

    level: Literal["error", "warning"]
    where: str
    """The field, such as "pairs.1.question"."""
    rule: str
    reason: str


def present(value: Any) -> Any:
    """What was written without the fields that are null, which are as good as not there."""
    if isinstance(value, Mapping):
        return {name: present(one) for name, one in value.items() if one is not None}
    return list(map(present, value)) if isinstance(value, list) else value


def error(where: str, rule: str, reason: str) -> Finding:
    return Finding("error", where, rule, reason)


def warning(where: str, rule: str, reason: str) -> Finding:
    return Finding("warning", where, rule, reason)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words of a rewrite beside the question."""

    text: str
    change: Literal["same", "added", "removed"]


def mark_edits(question: str, rewrite: str) -> list[Piece]:
    """The rewrite with the words that it adds to the question, and those that it leaves out.

    >>> [(piece.text, piece.change) for piece in mark_edits("Who made it?", "Who made it in 1990?")]
    [('Who made it', 'same'), (' in 1990', 'added'), ('?', 'same')]
    """
    before, after = _TOKEN.findall(question), _TOKEN.findall(rewrite)
    matcher = difflib.SequenceMatcher(
        None, [token.lower() for token in before], [token.lower() for token in after], False
    )
    pieces = []
    for change, i, j, k, m in matcher.get_opcodes():
        if change == "equal":
            pieces.append(Piece("".join(after[k:m]), "same"))
            continue
        if j > i:
            pieces.append(Piece("".join(before[i:j]), "removed"))
        if m > k:
            pieces.append(Piece("".join(after[k:m]), "added"))
    return pieces


# Answers and rewrites.


def check_answers(item: Value, value: Value) -> Iterator[Finding]:
    """Check one answer, several pairs, or nothing found.

    >>> pair = {"question": "who made it", "answers": ["Ann"]}
    >>> for one in check_answers({"question": "Who made it?"}, {"outcome": "several", "pairs": [pair]}):
    ...     print(one.where, one.rule)
    pairs too-few
    pairs.0.question unchanged
    """
    outcome = value.get("outcome")
    if outcome == "single":
        yield from _check_aliases(value.get("answers", ()), "answers")
    elif outcome == "several":
        yield from _check_pairs(item["question"], value.get("pairs", ()))


def _check_pairs(question: str, pairs: Sequence[Value]) -> Iterator[Finding]:
    if len(pairs) < 2:
        yield error(
            "pairs",
            "too-few",
            "Several answers need at least two pairs. With one, choose “one answer”.",
        )
    asked: dict[str, int] = {}
    given: dict[str, int] = {}
    for number, pair in enumerate(pairs):
        where = f"pairs.{number}"
        yield from _check_rewrite(question, pair.get("question", ""), asked, number)
        answers = pair.get("answers", ())
        yield from _check_aliases(answers, f"{where}.answers")
        for key in filter(None, dict.fromkeys(map(normalize, answers))):
            other = given.setdefault(key, number)
            if other != number:
                yield warning(
                    f"{where}.answers",
                    "shared-answer",
                    f"Pair {other + 1} has this answer too. If both ask for the same thing, keep one of them.",
                )


def _check_rewrite(
    question: str, rewrite: str, asked: dict[str, int], number: int
) -> Iterator[Finding]:
    where = f"pairs.{number}.question"
    key = normalize(rewrite)
    if not rewrite.strip():
        yield error(
            where, "empty", "The rewritten question is empty. Write it, or delete the pair."
        )
    elif key == normalize(question):
        yield error(
            where,
            "unchanged",
            "This asks the same as the question above. Add the words that make this answer the only one.",
        )
    elif asked.setdefault(key, number) != number:
        yield error(
            where,
            "duplicate",
            f"Pair {asked[key] + 1} asks this already. Make the two differ, or delete one.",
        )
    elif not rewrite.rstrip().endswith("?"):
        yield warning(where, "no-question-mark", "A question ends with “?”.")


def _check_aliases(answers: Sequence[str], where: str) -> Iterator[Finding]:
    named = [answer for answer in answers if answer.strip()]
    if not named:
        yield error(where, "empty", "The answer is empty. Copy it from a page.")
    seen: dict[str, int] = {}
    for number, answer in enumerate(answers):
        own = f"{where}.{number}"
        if not answer.strip():
            if named:
                yield error(own, "empty", "This other name is empty. Fill it in, or delete it.")
            continue
        if len(answer.split()) > _LONGEST_ANSWER:
            yield warning(
                own,
                "long",
                f"Over {_LONGEST_ANSWER} words long. An answer is a short piece of a page.",
            )
        if seen.setdefault(answer.strip(), number) != number:
            yield error(own, "duplicate", "This name is listed twice. Delete one.")


def check_validation(item: Value, value: Value) -> Iterator[Finding]:
    """Check a verdict on the annotations of others."""
    verdict = value.get("verdict")
    count = len(item["annotations"])
    if verdict == "better":
        chosen = value.get("better")
        if chosen is None or not 0 <= chosen < count:
            yield error("better", "missing", "Say which of the annotations is right.")
    elif verdict == "new":
        if value.get("outcome") is None:
            yield error("outcome", "missing", "Choose: one answer, several, or nothing found.")
        yield from check_answers(item, value)
        for number, annotation in enumerate(item["annotations"]):
            if answer_keys(annotation) == answer_keys(value):
                yield warning(
                    "verdict",
                    "not-new",
                    f"This is what annotation {number + 1} says. Choose “one is right” and that one.",
                )


def answer_keys(value: Value) -> frozenset[str]:
    """Return the answers of an annotation, each by its first name as scores compare it.

    >>> answer_keys({"outcome": "single", "answers": ["The Bo", "Ray"]})
    frozenset({'bo'})
    """
    return frozenset(normalize(names[0]) for names in answers_of(value) if names)


def answers_of(value: Value) -> list[list[str]]:
    """The names of each answer that was given; none where nothing was found."""
    if value.get("outcome") == "several":
        return [list(pair.get("answers", ())) for pair in value.get("pairs", ())]
    if value.get("outcome") == "single":
        return [list(value.get("answers", ()))]
    return []


# Clarification questions.


def composed(value: Value) -> str:
    """The clarification question that a form spells."""
    options = [option.get("text", "").strip() for option in value.get("options", ())]
    lead = value.get("lead", "").strip()
    return compose_question(lead, options) if options and lead else ""


def listed_options(question: str, expected: int | None = None) -> list[str]:
    """The options that a clarification question lists behind its colon, whatever it begins with."""
    _, colon, listed = question.partition(":")
    parsed = parse_clarification(f"Which one: {listed}", expected) if colon else None
    return list(parsed.options) if parsed else []


def take_apart(question: str, expected: int | None = None) -> dict[str, Any] | None:
    """The lead and the options of a clarification question; None where it lists none.

    >>> take_apart("As of which year: 2017, or 2018?")
    {'lead': 'As of which year', 'options': ['2017', '2018']}
    """
    options = listed_options(question, expected)
    lead = question.partition(":")[0].strip()
    return {"lead": lead, "options": options} if options else None


def check_clarification(item: Value, value: Value) -> Iterator[Finding]:
    """Check the form of a clarification question, and that its options are the readings."""
    if value.get("action") == "not ambiguous":
        return
    options = value.get("options", ())
    lead = value.get("lead", "").strip()
    yield from _check_lead(lead, options)
    yield from _check_options(options)
    yield from _check_ties(item, value, options)
    labels = [option.get("text", "").strip() for option in options]
    if lead and len(labels) > 1 and all(labels):
        if listed_options(composed(value), len(labels)) != labels:
            yield warning(
                "options",
                "unreadable",
                "Read back, the question has other options than these. Avoid commas and “or” within an option.",
            )


def _check_lead(lead: str, options: Sequence[Value]) -> Iterator[Finding]:
    if not _LEAD.match(f"{lead} "):
        yield error(
            "lead",
            "form",
            "The question begins with “Which” and a category: “Which version”, “As of which year”.",
        )
        return
    category = lead.rsplit(maxsplit=1)[-1].lower()
    for number, option in enumerate(options):
        words = option.get("text", "").lower().split()
        if category != "one" and words and words[0] == category:
            yield warning(
                f"options.{number}.text",
                "repeats-category",
                f"“{category}” is said already: “Which {category}: 2010”, not “{category} 2010”.",
            )


def _check_options(options: Sequence[Value]) -> Iterator[Finding]:
    if len(options) < 2:
        yield error(
            "options",
            "too-few",
            "There are at least two options, or the question is not ambiguous.",
        )
    seen: dict[str, int] = {}
    for number, option in enumerate(options):
        text = option.get("text", "").strip()
        where = f"options.{number}.text"
        if not text:
            yield error(where, "empty", "The option is empty. Fill it in, or delete it.")
        elif seen.setdefault(normalize(text), number) != number:
            yield error(
                where, "duplicate", f"Option {seen[normalize(text)] + 1} says this already."
            )


def _check_ties(item: Value, value: Value, options: Sequence[Value]) -> Iterator[Finding]:
    readings = range(len(item["readings"]))
    excluded = set(value.get("excluded", ()))
    tied: dict[int, int] = {}
    for number, option in enumerate(options):
        where = f"options.{number}.reading"
        reading = option.get("reading")
        if reading is None or reading not in readings:
            yield error(where, "untied", "Say which reading this option stands for.")
        elif reading in excluded:
            yield error(
                where, "excluded", "This reading is excluded. Include it, or choose another."
            )
        elif tied.setdefault(reading, number) != number:
            yield error(
                where,
                "tied-twice",
                f"Option {tied[reading] + 1} stands for this reading. Each has one option.",
            )
    for reading in readings:
        if reading not in excluded and reading not in tied:
            yield error(
                "options",
                "no-option",
                f"Reading {reading + 1} has no option. Add one, or exclude the reading if it repeats another.",
            )


# Long answers, comparisons, preferences, marks.


def check_long_answer(item: Value, value: Value) -> Iterator[Finding]:
    """Check that a long answer holds every short one, and that added knowledge has a source.

    >>> item = {"readings": [{"question": "Who won in 1990?", "answers": ["Ann Lee", "Lee"]}]}
    >>> [one.rule for one in check_long_answer(item, {"text": "In 1990 it was Mr. Bo."})]
    ['missing-answer']
    >>> list(check_long_answer(item, {"text": "In 1990 it was Ms. lee."}))
    []
    """
    text = f" {normalize(value.get('text', ''))} "
    covered = set(value.get("covered", ()))
    for number, reading in enumerate(item["readings"]):
        names = [normalize(name) for name in reading["answers"]]
        if number in covered or any(f" {name} " in text for name in names if name):
            continue
        yield error(
            "text",
            "missing-answer",
            f"“{reading['answers'][0]}” is not in the text. Say it, or mark reading {number + 1} as said otherwise.",
        )
    for number, piece in enumerate(value.get("knowledge", ())):
        if piece.get("content", "").strip() and not piece.get("source", "").strip():
            yield error(
                f"knowledge.{number}.source", "no-source", "Name the page that this comes from."
            )


def check_reason(item: Value, value: Value) -> Iterator[Finding]:
    """Check that a preference has a reason of at least a sentence."""
    if len(value.get("reason", "").split()) < _FEWEST_REASON:
        yield error("reason", "short", "Say in at least one sentence why.")


def check_comparison(item: Value, value: Value) -> Iterator[Finding]:
    """Check that what was found in a long answer stands in it."""
    for number, text in enumerate(item["answers"]):
        found = value.get("found", ())
        own = found[number].get("answers", ()) if number < len(found) else ()
        for reading, span in enumerate(own):
            if span and normalize(span) not in normalize(text):
                yield error(
                    f"found.{number}.answers.{reading}",
                    "not-there",
                    f"Answer {'AB'[number]} does not say this. Copy the words from it, or leave the field empty.",
                )


def check_marks(item: Value, value: Value) -> Iterator[Finding]:
    """Check that every reading has its four marks."""
    marks = value.get("marks", ())
    for number in range(len(item["readings"])):
        own = marks[number] if number < len(marks) else {}
        missing = [name for name in ("answer", "true", "apart", "fluent") if own.get(name) is None]
        if missing:
            yield error(f"marks.{number}", "missing", f"Still to be marked: {', '.join(missing)}.")
