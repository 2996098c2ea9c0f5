"""The question back: whether it is worth asking, its category and its options in their order and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from whichsense.models.compact.categories import (
    LONGEST_LABEL,
    Choice,
    Lead,
    choose_lead,
    clean,
    has_content,
    header_of,
    key,
    order_key,
    shorten,
    surest_lead,
    without_category,
)
from whichsense.models.compact.phrases import (
    FUNCTION_KINDS,
    NEVER_FIRST,
    NEVER_LAST,
    AlignedRewrite,
    Kind,
    Phrase,
    align,
    choose_phrases,
    kind_of,
    load_ranker,
    phrase_text,
    split_words,
    without_commas,
)
from whichsense.text.answers import group_answers
from whichsense.text.clarification import compose_question
from whichsense.text.words import CLOSED_CLASS_WORDS, sentence_at
from whichsense.types import Case, Clarification, Option, Reading

# Whether it is worth asking back.


def has_differing_answers(case: Case) -> bool:
    """Return whether at least two readings have answers that do not mean the same."""
    answers = [reading.answer for reading in case.readings]
    weights = [reading.confidence for reading in case.readings]
    return len(group_answers(answers, weights)) > 1


def is_a_reading_itself(case: Case) -> bool:
    """Return whether the question, as it was asked, is the rewrite of one reading: it says which is meant."""
    asked = split_words(case.question).bare
    bare = [one for one in case.readings if not (one.source or one.label)]
    return [split_words(one.question).bare for one in bare].count(asked) == 1


def is_chosen_already(question: str, options: Sequence[Option]) -> bool:
    """Return whether the question's own words choose: all content of one label is in it, and of no other, and that
    option's rewrite leaves nothing of the question out (*Who wrote and sang it?* asks for both). A source's title
    does not.

    >>> from whichsense.types import Reading
    >>> film = Option("1", "the film", readings=(Reading("Who wrote the film Dune by Lynch?", "Lynch"),))
    >>> book = Option("2", "the book", readings=(Reading("Who wrote the book Dune?", "Herbert"),))
    >>> is_chosen_already("Who wrote the film Dune?", [film, book]), is_chosen_already("Who wrote Dune?", [film, book])
    (True, False)
    """
    asked = _content(question)
    named = []
    for option in options:
        content = _content(option.label)
        by_source = any(one.source and not one.label for one in option.readings)
        if content and content <= asked and not by_source:
            named.append(option)
    if len(named) != 1:
        return False
    return all(asked <= _content(reading.question) for reading in named[0].readings)


def _content(text: str) -> set[str]:
    words = split_words(text)
    pairs = zip(words.bare, words.kinds, strict=True)
    return {word for word, kind in pairs if kind not in FUNCTION_KINDS}


# Options from labels: those that say the same are merged, the rest ordered, and many put into groups.

MOST_OPTIONS = 6
_LONGEST_DESCRIPTION = 160  # characters
_UNNAMED = "a reading without a name"
_REST = ("another one", "one of the others", "one of the rest")


def make_options(
    labels: Sequence[str], readings: Sequence[Reading], *, ordered: bool
) -> list[Option]:
    """Return an option for each label that differs, with the readings of all equal ones; `ordered`: by time or number
    where all labels have one."""
    options = [
        Option("", label if key(shorten(label)) else _UNNAMED, readings=(reading,))
        for label, reading in zip(labels, readings, strict=True)
    ]
    return in_order(_merged(options)) if ordered else _merged(options)


def in_order(options: Sequence[Option]) -> list[Option]:
    """By year, date or number where every label has one; otherwise as they are, most probable first."""
    keys = [order_key(option.label) for option in options]
    if None in keys:
        return list(options)
    pairs = sorted(zip(keys, range(len(options)), strict=True))
    return [options[number] for _, number in pairs]


def describe(reading: Reading) -> str:
    """Return a line beneath an option: where its evidence is from, and what it says."""
    if not reading.evidence:
        return shorten(reading.source or reading.question, _LONGEST_DESCRIPTION)
    span = reading.evidence[0]
    start, end = sentence_at(span.passage.text, span.start)
    sentence = " ".join(span.passage.text[start:end].split())
    title = " ".join(span.passage.title.split())
    return shorten(f"{title}: {sentence}" if title else sentence, _LONGEST_DESCRIPTION)


def numbered(options: Sequence[Option], within: str = "") -> tuple[Option, ...]:
    """Options with their ids: "1", "2", …, and "2.1" inside a group."""
    ids = [f"{within}{number}" for number in range(1, len(options) + 1)]
    return tuple(
        replace(option, id=one, options=numbered(option.options, f"{one}."))
        for one, option in zip(ids, options, strict=True)
    )


def group(options: Sequence[Option]) -> list[Option]:
    """Return at most six options: of more, the first five and a group of the others."""
    if len(options) <= MOST_OPTIONS:
        return list(options)
    first = list(options[: MOST_OPTIONS - 1])
    used = {key(option.label) for option in first}
    name = next((name for name in _REST if key(name) not in used), _REST[0])
    return [*first, _as_group(name, options[MOST_OPTIONS - 1 :])]


def _as_group(name: str, members: Sequence[Option]) -> Option:
    readings = tuple(reading for member in members for reading in member.readings)
    listed = ", ".join(member.label for member in members)
    description = shorten(listed, _LONGEST_DESCRIPTION)
    return Option("", name, description, readings, tuple(group(members)))


# The form of a clarification, whoever made it: the same one repaired.

_LONGEST_CATEGORY = 30


def repair(clarification: Clarification) -> Clarification | None:
    """Return the same clarification in the right form; None where fewer than two options are left.

    Options that stand for no reading go, equal ones are merged, long labels are cut between words, a category that
    repeats in the options is taken out of them, and more than six options are put into groups.
    """
    options = _merged(clarification.options)
    if len(options) < 2:
        return None
    lead = clean(clarification.lead) or "Which one"
    category = clean(clarification.category) or "one"
    if len(category) > _LONGEST_CATEGORY or len(lead) > 2 * _LONGEST_CATEGORY:
        lead, category = "Which one", "one"
    shorter = without_category([option.label for option in options], category)
    if shorter is None:
        lead, category = "Which one", "one"
    else:
        pairs = zip(options, shorter, strict=True)
        options = [replace(option, label=label) for option, label in pairs]
    return compose(lead, category, options)


def compose(lead: str, category: str, options: Sequence[Option]) -> Clarification:
    """Return a clarification of merged options; of more than six the last ones are a group."""
    few = group(options)
    question = compose_question(lead, [option.label for option in few])
    return Clarification(header_of(category), question, category, numbered(few))


def _merged(options: Sequence[Option]) -> list[Option]:
    """Options that stand for readings, each reading in one of them, equal labels merged."""
    merged: dict[str, Option] = {}
    taken: set[int] = set()
    for option in options:
        label = shorten(option.label)
        own = tuple(one for one in option.readings if id(one) not in taken)
        taken.update(map(id, own))
        before = merged.get(key(label))
        if before:
            merged[key(label)] = replace(before, readings=(*before.readings, *own))
        elif own and key(label):
            about = clean(option.description) or describe(own[0])
            merged[key(label)] = replace(option, label=label, description=about, readings=own)
    return list(merged.values())


# From a case with readings to its clarification.

_ONE = Lead("one")
# Prepositions that say nothing where all options have them.
_PLAIN_PREPOSITIONS = ("in", "on", "at", "of", "from")
_NUMBERS = (Kind.YEAR, Kind.DATE, Kind.NUMBER)
_MOST_WIDENED = 4  # words of a name that a label lacks


def clarify(case: Case) -> Clarification | None:
    """Return what to ask back, for whom the case's policy says; None where it is not worth asking."""
    if len(case.readings) < 2:
        return None
    if not case.policy.careful:
        return clarify_as_annotators(case.question, case.readings)
    if is_a_reading_itself(case) or not has_differing_answers(case):
        return None
    lead, labels = _name_for_people(case.question, case.readings)
    labels = _told_apart(labels, case.readings)
    lead = _fitting_lead(lead, labels, case.readings)
    shorter = without_category(labels, lead.category)
    if shorter is None:
        lead = _ONE
    else:
        labels = shorter
    options = make_options(labels, case.readings, ordered=True)
    if len(options) < 2 or is_chosen_already(case.question, options):
        return None
    return compose(lead.text, lead.category, options)


def _fitting_lead(lead: Lead, labels: Sequence[str], readings: Sequence[Reading]) -> Lead:
    if any(label == one.answer for label, one in zip(labels, readings, strict=True)):
        return _ONE
    lead = surest_lead(lead, labels)
    if any(label.startswith(f"{lead.preposition} ") for label in labels):
        return Lead(lead.category)  # "Which country: in Finland, …", not "In which"
    return lead


def clarify_as_annotators(question: str, readings: Sequence[Reading]) -> Clarification:
    """Ask as CAmbigNQ's annotators do: an option for each reading, in the given order, in full length."""
    labels = [one.label or one.source or one.answer for one in readings]
    lead, phrases = _name_by_rewrites(question, readings)
    for number, phrase in phrases.items():
        labels[number] = phrase
    labels = [without_commas(clean(label)) or "this" for label in labels]
    pairs = zip(labels, readings, strict=True)
    options = [make_options([one], [own], ordered=False)[0] for one, own in pairs]
    text = compose_question(lead.text, labels)
    return Clarification(header_of(lead.category), text, lead.category, numbered(options))


def _name_for_people(question: str, readings: Sequence[Reading]) -> tuple[Lead, list[str]]:
    """Return the lead, and what each reading is offered as: its label, else what its rewrite adds, else its source,
    else its answer."""
    labels = [_as_option(reading) for reading in readings]
    lead, phrases = _name_by_rewrites(question, readings, for_people=True)
    for number, phrase in phrases.items():
        labels[number] = labels[number] or phrase
    named = [label or one.source or one.answer for label, one in zip(labels, readings, strict=True)]
    return lead, named


def _name_by_rewrites(
    question: str, readings: Sequence[Reading], *, for_people: bool = False
) -> tuple[Lead, dict[int, str]]:
    """Return the lead, and what each rewrite adds, by the number of its reading. A label is offered in its place."""
    asked = split_words(question).bare
    numbers = [
        number
        for number, one in enumerate(readings)
        if not one.label and split_words(one.question).bare not in ((), asked)
    ]
    if not numbers:
        return _ONE, {}
    rewrites = align(question, [readings[number].question for number in numbers])
    phrases = choose_phrases(rewrites, load_ranker("options"), _fits if for_people else None)
    choice = Choice(rewrites, phrases)
    lead = choose_lead(choice, load_ranker("leads")) if len(numbers) == len(readings) else _ONE
    if for_people:
        choice = Choice(rewrites, _with_openings(rewrites, phrases))
    return lead, dict(zip(numbers, choice.options, strict=True))


def _fits(rewrite: AlignedRewrite, phrase: Phrase) -> bool:
    return len(phrase_text(rewrite, phrase)) <= LONGEST_LABEL


def _with_openings(rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]) -> list[Phrase]:
    """Return the phrases with the whole of a name that each ends and the article before it, and with the preposition
    before that where it says something: "by area", "in London, or at the Majestic Theatre"."""
    starts = [_opening(one, phrase) for one, phrase in zip(rewrites, phrases, strict=True)]
    prepositions = []
    for rewrite, start in zip(rewrites, starts, strict=True):
        has_one = start > 0 and rewrite.words.kinds[start - 1] is Kind.PREPOSITION
        prepositions.append(rewrite.words.bare[start - 1] if has_one else "")
    different = set(prepositions)
    says_something = len(different) > 1 or different.isdisjoint(_PLAIN_PREPOSITIONS)
    if says_something and all(prepositions):
        return [(start - 1, end) for start, (_, end) in zip(starts, phrases, strict=True)]
    return [(min(start, own), end) for start, (own, end) in zip(starts, phrases, strict=True)]


def _opening(rewrite: AlignedRewrite, phrase: Phrase) -> int:
    """Return where a phrase begins behind its preposition, with the whole of its name and with its article."""
    kinds = rewrite.words.kinds
    start, end = phrase
    start += kinds[start] is Kind.PREPOSITION and end - start > 1
    while start > 0 and kinds[start] is kinds[start - 1] is Kind.NAME:
        start -= 1
    is_number = end - start == 1 and kinds[start] in _NUMBERS
    has_article = start > 1 and kinds[start - 1] is Kind.ARTICLE
    return start - (has_article and not is_number)


def _as_option(reading: Reading) -> str:
    """Return a reading's label with the whole of a name that it cuts in its evidence, and without loose words at its
    ends; empty where no content is left."""
    label = clean(reading.label)
    for span in reading.evidence:
        wider = _widened(label, f"{span.passage.title}. {span.passage.text}")
        if len(wider) <= LONGEST_LABEL and reading.answer not in wider:
            label = wider
            break
    label = _without_loose_ends(label)
    little = (word in CLOSED_CLASS_WORDS or word.endswith("ly") for word in split_words(label).bare)
    return "" if all(little) else label


def _without_loose_ends(label: str) -> str:
    words = label.split()
    while words and kind_of(words[-1]) in (*NEVER_LAST, Kind.MARK):
        words.pop()
    while words and kind_of(words[0]) in NEVER_FIRST:
        words.pop(0)
    return " ".join(words)


def _widened(label: str, text: str) -> str:
    """Return a label of a text with the name that goes on beyond it.

    >>> _widened("the Great", "Named after Peter the Great by its founder."), _widened("Empire", "In the German Empire")
    ('Peter the Great', 'German Empire')
    """
    place = text.find(label) if label else -1
    if place < 0:
        return label
    words = label.split()
    names = [kind_of(word) is Kind.NAME for word in words if kind_of(word) is not Kind.ARTICLE]
    before, after = text[:place], text[place + len(label) :]
    if before.endswith(" ") and names[:1] == [True]:
        behind = before[:-1].split(" ")[: -_MOST_WIDENED - 1 : -1]
        words = [*takewhile(_is_name, behind)][::-1] + words
    if after.startswith(" ") and names[-1:] == [True]:
        words += _name_at(after[1:].split(" ")[:_MOST_WIDENED])
    return " ".join(words)


def _name_at(words: Sequence[str]) -> list[str]:
    """Return the first words that are of a name, up to a mark after one."""
    name = []
    for word in words:
        bare = word.rstrip(".,;:)")
        if not _is_name(bare):
            break
        name.append(bare)
        if bare != word:
            break
    return name


def _is_name(word: str) -> bool:
    return word.isalpha() and word.istitle() and kind_of(word) is Kind.NAME


def _told_apart(labels: Sequence[str], readings: Sequence[Reading]) -> list[str]:
    """Name readings by their answers where the answers of one label differ, or where it has no content but others'
    have."""
    members: dict[str, list[int]] = {}
    some_have_content = any(map(has_content, labels))
    for number, label in enumerate(labels):
        says_something = has_content(label) or not some_have_content
        same = key(shorten(label)) if says_something else ""
        members.setdefault(same, []).append(number)
    apart = list(labels)
    for same, numbers in members.items():
        answers = [readings[number].answer for number in numbers]
        differ = len(group_answers(answers, [1.0] * len(answers))) > 1
        if differ or not same:
            for number in numbers:
                apart[number] = readings[number].answer
    return apart
