"""From a case with readings to its clarification."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.models.compact.clarification.alignment import align, split_words
from whichsense.models.compact.clarification.form import compose
from whichsense.models.compact.clarification.grouping import make_options, numbered
from whichsense.models.compact.clarification.labels import (
    clean,
    complete,
    has_content,
    header_of,
    key,
    name_kind,
    surest_lead,
    with_capitals,
    without_category,
)
from whichsense.models.compact.clarification.leads import Choice, Lead, choose_lead
from whichsense.models.compact.clarification.options import always, choose_phrases
from whichsense.models.compact.clarification.phrases import without_commas
from whichsense.models.compact.clarification.polishing import (
    noun_behind,
    polish,
    suits_people,
)
from whichsense.models.compact.clarification.ranking import load_ranker
from whichsense.models.compact.clarification.worth import (
    has_differing_answers,
    is_a_reading_itself,
    is_chosen_already,
)
from whichsense.text.answers import group_answers
from whichsense.text.clarification import compose_question
from whichsense.types import Case, Clarification, Reading

_ONE = Lead("one")


def clarify(case: Case) -> Clarification | None:
    """What to ask back, made for whom the case's policy says; None where it is not worth asking."""
    if len(case.readings) < 2:
        return None
    if not case.policy.careful:
        return clarify_as_annotators(case.question, case.readings)
    if is_a_reading_itself(case) or not has_differing_answers(case):
        return None
    lead, labels = name_options(case.question, case.readings, for_people=True)
    if not any(map(str.isupper, case.question[1:])):
        labels = list(map(_restored, labels, case.readings))
    labels = list(map(_in_full, labels, case.readings))
    labels = _told_apart(labels, case.readings)
    lead = surest_lead(lead, labels)
    if any(label.startswith(f"{lead.preposition} ") for label in labels):
        lead = Lead(lead.category)  # "Which country: in Finland, …", not "In which"
    shorter = without_category(labels, lead.category)
    if shorter is None:
        lead = _ONE
    else:
        labels = shorter
    options = make_options(labels, case.readings, ordered=True)
    if len(options) < 2 or is_chosen_already(case.question, options):
        return None
    return compose(lead.text, lead.category, options)


def clarify_as_annotators(question: str, readings: Sequence[Reading]) -> Clarification:
    """As CAmbigNQ's annotators write: an option for each reading, in the given order, in full length."""
    lead, names = name_options(question, readings)
    labels = [without_commas(clean(name)) or "this" for name in names]
    options = []
    for label, reading in zip(labels, readings, strict=True):
        (option,) = make_options([label], [reading], ordered=False)
        options.append(option)
    text = compose_question(lead.text, labels)
    return Clarification(
        header_of(lead.category), text, lead.category, numbered(options)
    )


def name_options(
    question: str, readings: Sequence[Reading], *, for_people: bool = False
) -> tuple[Lead, list[str]]:
    """The lead, and what each reading is offered as: its label, else what its rewrite adds, else its source."""
    asked = split_words(question).bare
    rewritten = []
    for number, reading in enumerate(readings):
        if not reading.label and split_words(reading.question).bare not in ((), asked):
            rewritten.append(number)
    labels = [one.label or one.source or one.answer for one in readings]
    if not rewritten:
        return _ONE, labels
    rewrites = align(question, [readings[number].question for number in rewritten])
    keep = suits_people if for_people else always
    phrases = choose_phrases(rewrites, load_ranker("options"), keep)
    choice = Choice(split_words(question), rewrites, phrases)
    lead = choose_lead(choice, load_ranker("leads"))
    names = choice.options
    if for_people:
        noun = noun_behind(rewrites, phrases)
        lead = Lead(noun) if noun and lead.category == "one" else lead
        names = polish(rewrites, phrases)
    for number, label in zip(rewritten, names, strict=True):
        labels[number] = label
    return (lead if len(rewritten) == len(readings) else _ONE), labels


def _restored(label: str, reading: Reading) -> str:
    texts = [f"{span.passage.title}. {span.passage.text}" for span in reading.evidence]
    return with_capitals(label, " ".join(texts))


def _in_full(label: str, reading: Reading) -> str:
    title = reading.evidence[0].passage.title if reading.evidence else ""
    return complete(name_kind(label, title))


def _told_apart(labels: Sequence[str], readings: Sequence[Reading]) -> list[str]:
    """Where readings of one label have answers that differ, each is named by its answer instead; so is one whose label
    has no content, where others have."""
    members: dict[str, list[int]] = {}
    some_have_content = any(map(has_content, labels))
    for number, label in enumerate(labels):
        says_something = has_content(label) or not some_have_content
        members.setdefault(key(label) if says_something else "", []).append(number)
    apart = list(labels)
    for same, numbers in members.items():
        answers = [readings[number].answer for number in numbers]
        differ = len(group_answers(answers, [1.0] * len(answers))) > 1
        if differ or not same:
            for number in numbers:
                apart[number] = readings[number].answer
    return apart
