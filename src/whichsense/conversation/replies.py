"""Understand a free reply to a clarification: a choice, all of them, a question, or none of these."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, filterfalse
from operator import attrgetter

from whichsense.conversation.matching import (
    Matcher,
    Token,
    find_limit,
    plain,
    size_order,
    time_order,
    tokenize,
)
from whichsense.conversation.turns import (
    ABOUT,
    ALL,
    CHOOSE,
    NONE,
    QUESTION,
    SKIP,
    UNCLEAR,
    Intent,
    check_reply,
)
from whichsense.text.reply_words import (
    ALL_WORDS,
    AUXILIARIES,
    CARDINALS,
    COURTESIES,
    DENIALS,
    FILLERS,
    FIRST_WORDS,
    GREETINGS,
    INDIFFERENT,
    LAST_WORDS,
    MEASURES,
    META_WORDS,
    MIDDLE_WORDS,
    NONE_PHRASES,
    NONE_WORDS,
    ORDINALS,
    POINTERS,
    REQUESTS,
    SIZE_ORDER,
    SKIP_PHRASES,
    TIME_ORDER,
)
from whichsense.text.words import CLOSED_CLASS_WORDS, WH_WORDS
from whichsense.types import Clarification

# Replies that are about the options as a whole: all of them, none of them, no preference.

_KNOWN = FILLERS | DENIALS | INDIFFERENT


def whole_intent(bare: str, matcher: Matcher) -> Intent | None:
    """All, none or no preference; None where the reply says more than that."""
    if _is_skipping(bare):
        return Intent(SKIP)
    tokens = matcher.tokens(bare)
    words = [token.text for token in tokens]
    if _is_phrase(words, NONE_PHRASES):
        return Intent(NONE)
    # What may stand beside all and none: "all three", "all seasons", "another John Whitfield".
    if not all(_is_general(token, matcher) for token in tokens):
        return None
    if not NONE_WORDS.isdisjoint(words):
        return Intent(NONE)
    if not ALL_WORDS.isdisjoint(words) or _counts_all(words, len(matcher.ids)):
        return Intent(ALL, tuple(matcher.ids))
    return None


def _is_phrase(words: Sequence[str], phrases: Collection[str]) -> bool:
    """Whether words are one of the phrases, with nothing but courtesies around it."""
    short = " ".join(word for word in words if word not in COURTESIES)
    return short in phrases or " ".join(words) in phrases


def _is_skipping(bare: str) -> bool:
    """Whether a reply says that there is no preference: "not sure, you decide"."""
    words = [token.text for token in tokenize(bare)]
    is_denied = not DENIALS.isdisjoint(words) and not INDIFFERENT.isdisjoint(words)
    return _is_phrase(words, SKIP_PHRASES) or (is_denied and _KNOWN.issuperset(words))


def _is_general(token: Token, matcher: Matcher) -> bool:
    """Whether a token says the same of all options: all, none, their number, their category, a word of the
    question or of every label."""
    if token.text in ALL_WORDS | NONE_WORDS | DENIALS:
        return True
    if token.number is not None:
        return token.number == len(matcher.ids)
    if token.stem in matcher.asked or token.stem in matcher.shared:
        return True
    return token not in matcher.content([token])


def _counts_all(words: Sequence[str], count: int) -> bool:
    """ "the two of them"."""
    numbers = [CARDINALS[word] for word in words if word in CARDINALS]
    return "of" in words and numbers == [count] and ORDINALS.keys().isdisjoint(words)


# Positions in a list: "2", "the second one", "the last", "b".


def is_place_word(token: Token) -> bool:
    """Whether a word names a position without a number."""
    return token.text in LAST_WORDS | FIRST_WORDS | MIDDLE_WORDS


def pick(tokens: Sequence[Token], listed: Sequence[str]) -> str:
    """The item at the position that the tokens name; '' where they name none, or one that does not exist."""
    place = _place(tokens, len(listed))
    return listed[place - 1] if 0 < place <= len(listed) else ""


def _place(tokens: Sequence[Token], count: int) -> int:
    """The position that tokens name, from 1; 0 if they name none."""
    numbers = [one.number for one in tokens if one.number and not one.is_short_year]
    if numbers:
        return int(numbers[0]) * numbers[0].is_integer()
    words = {token.text for token in tokens}
    middle = (count + 1) // 2 * (count % 2)
    for known, place in ((LAST_WORDS, count), (FIRST_WORDS, 1), (MIDDLE_WORDS, middle)):
        if place and words & known:
            return place
    return _bare_place([token.text for token in tokens])


def _bare_place(words: Sequence[str]) -> int:
    """ "one" and "b" are positions where they stand alone, and "one" where it is pointed at: "option one"."""
    bare = [word for word in words if word not in POINTERS]
    if len(bare) < len(words):
        bare = [word for word in bare if word not in FILLERS or word == "one"]
    if bare == ["one"]:
        return 1
    return ord(bare[0]) - ord("a") + 1 if list(map(len, bare)) == [1] else 0


# Which options a choice names: by position, by order, by period, by words; several of them, or all
# but some.

_EXCEPT = (
    r"\b(?:(?:all|any|anything|everything|every one|any one|everyone|anyone)"
    r"(?: of (?:them|these|those))? (?:but|except(?: for)?|other than|besides|apart from|excluding|without|save)"
    r"|except(?: for)?|excluding|other than|apart from|but not|and not|not|neither|without|rather than|instead of"
    r"|dont (?:mean|want)|didnt mean|do not (?:mean|want)|did not mean|no)\b"
)
_NEGATION = re.compile(_EXCEPT)
_SEPARATOR = re.compile(r",(?!\d{3}\b)|;|&|\+|/|\b(?:and|or|nor|plus|but|as well as|along with)\b")
_JOINING = ("and", "or", "nor", "&", "+")  # a negation goes on behind these
_RANGE = re.compile(r"\b(\d) ?(?:-|–|to|through|thru|till|until) ?(\d)\b")
_COUNT = re.compile(
    r"\b(first|top|last|bottom|final|oldest|newest|latest|earliest|biggest|largest|smallest|longest|shortest)"
    rf" ({'|'.join(CARDINALS)}|\d)\b"
    rf"|\b({'|'.join(CARDINALS)}|\d) (oldest|newest|latest|earliest|biggest|largest|smallest|longest|shortest)\b"
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Options that a part of a reply names."""

    ids: tuple[str, ...]
    score: float
    by_label: bool = False
    """Whether a number in it was a part of labels ("season 2") and no position."""


NOTHING = Selection((), 0.0)


def select(text: str, matcher: Matcher) -> Selection:
    """The options that a plain text chooses, in the order of the options."""
    whole = matcher.labelled(text)
    if whole:
        return Selection((whole,), 1.0)
    named: set[str] = set()
    excluded: set[str] = set()
    scores = []
    is_negated = False
    noun = ""
    for separator, clause in _clauses(text, matcher):
        before, negation, behind = _negated(clause)
        named.update(_resolve(before, matcher).ids)
        # A negation goes on behind "and".
        is_negated = bool(negation) or (is_negated and separator in _JOINING)
        selection = _resolve_figure(behind, noun, matcher)
        if selection.by_label:
            noun = re.sub(r"\d+", "", behind).strip()
        if selection.ids:
            (excluded if is_negated else named).update(selection.ids)
            scores.append(selection.score)
    if not scores:
        return NOTHING
    kept = (named or set(matcher.ids)) - excluded
    return Selection(tuple(filter(kept.__contains__, matcher.ids)), min(scores))


def _negated(clause: str) -> tuple[str, str, str]:
    """What stands before a negation, the negation, and what follows it; without one all follows."""
    negation = _NEGATION.search(clause)
    if not negation:
        return "", "", clause
    return clause[: negation.start()], negation[0], clause[negation.end() :]


def _resolve_figure(clause: str, noun: str, matcher: Matcher) -> Selection:
    """The options that one clause names; a bare figure has the noun before it: "seasons 1 and 2"."""
    if noun and clause.strip().isdigit():
        joined = _resolve(f"{noun} {clause}", matcher)
        if joined.by_label:
            return joined
    return _resolve(clause, matcher)


def _clauses(text: str, matcher: Matcher) -> list[tuple[str, str]]:
    """(what stands before it, clause); labels that hold a separator stay whole."""
    is_span = find_limit(text) and re.search(r"\bbetween\b|\bfrom\b.*\bto\b", text)
    if _RANGE.search(text) or is_span:
        return [("", text)]
    masked = text
    for profile in matcher.profiles:
        label = profile.label.text.lower()
        hidden = _SEPARATOR.sub(lambda match: "\x00" * len(match[0]), label)
        masked = masked.replace(label, hidden)
    clauses = []
    separator = ""
    start = 0
    for match in _SEPARATOR.finditer(masked):
        if match[0] == "but" and _NEGATION.search(masked[start : match.end()]):
            continue  # "all but the film" is one clause
        clauses.append((separator, text[start : match.start()]))
        separator, start = match[0], match.end()
    clauses.append((separator, text[start:]))
    return [(mark, clause) for mark, clause in clauses if clause.strip()]


def _resolve(clause: str, matcher: Matcher) -> Selection:
    """The options that one clause names."""
    whole = matcher.labelled(clause)
    if whole:
        return Selection((whole,), 1.0)
    ways = (_in_a_row, _within, _counted, _by_order)
    found = (way(clause, matcher) for way in ways)
    named = next((one for one in found if one.ids), None)
    return named or _by_position_or_words(matcher.tokens(clause), matcher)


def _in_a_row(clause: str, matcher: Matcher) -> Selection:
    """ "2-4"."""
    spread = _RANGE.search(clause)
    if spread and 1 <= int(spread[1]) < int(spread[2]) <= len(matcher.ids):
        ids = matcher.ids[int(spread[1]) - 1 : int(spread[2])]
        return Selection(tuple(ids), 1.0)
    return NOTHING


def _within(clause: str, matcher: Matcher) -> Selection:
    """Options in a period that the other words fit, too: "the films before 1990"."""
    limit = find_limit(clause)
    if limit is None:
        return NOTHING
    period, rest = limit
    inside = [one.id for one in matcher.profiles if any(map(period.contains, one.years))]
    tokens = [one for one in matcher.tokens(rest) if one.text not in ALL_WORDS]
    named, _ = matcher.meant(matcher.content(tokens))
    inside = [one for one in inside if one in named] or inside
    return Selection(tuple(inside), 0.9)


def _counted(clause: str, matcher: Matcher) -> Selection:
    """ "the first two", "the two oldest"."""
    match = _COUNT.search(clause)
    if match is None or set(match[0].split()) <= matcher.label_words:
        return NOTHING
    word = match[1] or match[4]
    figure = match[2] or match[3]
    count = int(figure) if figure.isdigit() else CARDINALS[figure]
    if word in ("first", "top"):
        return Selection(tuple(matcher.ids[:count]), 1.0)
    if word in ("last", "bottom", "final"):
        return Selection(tuple(matcher.ids[-count:]), 1.0)
    ranked = _ranked(word, matcher, matcher.ids)[:count]
    return Selection(tuple(chain(*ranked)), 0.9)


def _by_order(clause: str, matcher: Matcher) -> Selection:
    """ "the newest film", "the second oldest", "the biggest"."""
    tokens = matcher.tokens(clause)
    found = (TIME_ORDER | SIZE_ORDER).keys() & {one.text for one in tokens}
    # "most recent" is about time: the other word decides.
    word = min(found, key=lambda one: (one == "most", one), default="")
    if word in ("", *matcher.label_words):
        return NOTHING
    rest = [one for one in tokens if one.text not in (word, "most", "least", "more")]
    ordinals = list(filter(attrgetter("is_ordinal"), rest))
    place = int(ordinals[0].number or 1) if ordinals else 1
    named, _ = matcher.meant([one for one in matcher.content(rest) if one not in ordinals])
    return Selection(
        tuple(chain(*_ranked(word, matcher, named or matcher.ids)[place - 1 : place])), 0.9
    )


def _ranked(word: str, matcher: Matcher, candidates: Sequence[str]) -> list[list[str]]:
    """The candidates in the order that a superlative asks for, those alike together; empty where they have none."""
    profiles = [one for one in matcher.profiles if one.id in candidates]
    if word in TIME_ORDER:
        known, direction = time_order(profiles), TIME_ORDER[word]
    else:
        known, direction = size_order(profiles), SIZE_ORDER[word]
    if len(known) < min(2, len(profiles)):
        return []
    alike: dict[float, list[str]] = {}
    for value, identifier in sorted(known, key=lambda pair: -direction * pair[0]):
        alike.setdefault(value, []).append(identifier)
    return list(alike.values())


def _by_position_or_words(tokens: Sequence[Token], matcher: Matcher) -> Selection:
    content = [one for one in matcher.content(tokens) if one.text not in POINTERS]
    nouns = list(filter(_is_noun, content))
    placed = _by_position(tokens, nouns, matcher)
    if placed:
        return placed
    named, score = matcher.meant(list(filterfalse(is_place_word, content)))
    has_number = any(token.number is not None for token in tokens)
    by_words = Selection(tuple(named), score, by_label=has_number and bool(named))
    is_counted = has_number or any(map(is_place_word, tokens))
    among = _place_among(nouns, by_words, tokens, matcher) if nouns and is_counted else None
    return among or by_words


def _by_position(
    tokens: Sequence[Token], nouns: Sequence[Token], matcher: Matcher
) -> Selection | None:
    """ "option 2", or a number that stands alone."""
    place = pick(tokens, matcher.ids)
    is_pointed = any(token.text in POINTERS for token in tokens)
    if not place or (nouns and not is_pointed):
        return None
    numbered = None if is_pointed else _numbered(tokens, matcher)
    return numbered or Selection((place,), 1.0)


def _place_among(
    nouns: Sequence[Token], by_words: Selection, tokens: Sequence[Token], matcher: Matcher
) -> Selection | None:
    """ "the second film": a number in the labels, or else a place among those that the words name."""
    ids, score = matcher.meant(nouns)
    if by_words.ids and set(by_words.ids) < set(ids):
        return by_words
    among, place = pick(tokens, ids), pick(tokens, matcher.ids)
    if among:
        return Selection((among,), score)
    # "the second meeting"
    return Selection((place,), 0.5) if place and not by_words.ids else None


def _is_noun(token: Token) -> bool:
    """Whether a token may be what is counted."""
    return token.number is None and len(token.text) > 1 and not is_place_word(token)


def _numbered(tokens: Sequence[Token], matcher: Matcher) -> Selection | None:
    """The option whose label has the number that stands beside the category: "the second season", "season 2"."""
    number = next((token.number for token in tokens if token.number is not None), None)
    initials = {stem[0] for stem in matcher.category}  # s3
    if number is None or (matcher.category | initials).isdisjoint(one.stem for one in tokens):
        return None
    having = [one.id for one in matcher.profiles if number in one.numbers]
    return Selection(tuple(having), 0.95, by_label=True) if len(having) == 1 else None


# Is a reply a question: a new one, one about the options, or the old one said more exactly?

# What a choice may begin with, though it looks like a question.
_PROPOSAL = re.compile(
    r"^(?:(?:and|so|then|but|ok|okay),? )*(?:(?:what|how) about\b"
    r"|(?:can|could|may|would|will|shall|should) (?:you|i|we) (?:please |just )?"
    r"(?:have|give|show|get|take|see|choose|pick|select|use|go with|go for)\b)"
)
_ABOUT_ALL = re.compile(
    r"\bwhat (?:do|did) you mean|\bwhy (?:do|are|did) you ask|\b(?:dont|do not) understand"
    r"|\bwhat (?:are|were) (?:the|my|these|those) (?:options|choices)"
)
_SUBJECTS = ("who", "what", "whom", "whose", "which")
_ADVERBS = ("when", "where", "why", "how")
_MEANING = frozenset(("mean", "means", "meaning"))
_LED_BY = ("in", "on", "at", "for", "from", "to", "until", "since", "by", "with")
_PRONOUNS = ("i", "you", "we", "it", "they", "he", "she")
_POINTED = re.compile(
    r"\b(?:option|number|choice) #?(?:\d|[a-e]|one|two|three|four|five)\b|#\d"
    r"|\b(?:first|second|third|fourth|fifth|last|\d(?:st|nd|rd|th)) (?:one|option|choice)\b"
)


def opening(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without what stands before a question: "ok, and who …"."""
    start = 0
    while start < len(tokens) and tokens[start].text in GREETINGS:
        start += 1
    return list(tokens[start:])


def is_question(text: str) -> bool:
    """Whether a plain text asks or requests something: a question word with a verb behind it, or a verb in front.

    >>> asked = ("who wrote it", "and when was that?", "is it old", "tell me more", "until when can I book")
    >>> all(map(is_question, asked))
    True
    >>> any(map(is_question, ("when it was signed", "the film?", "how deep it is", "which")))
    False
    """
    first, second, third = _first_words(text)
    if first in AUXILIARIES:
        return bool(third)
    # "how deep is it", not "how deep it is"
    is_measured = first == "how" and second in MEASURES
    if is_measured or first in _SUBJECTS:
        return (third if is_measured else second) not in ("", *_PRONOUNS)
    return first in REQUESTS or (first in _ADVERBS and second in AUXILIARIES)


def _first_words(text: str) -> list[str]:
    """The first three words of a question: of "until when can I …", those after "until"."""
    words = [*(token.text for token in opening(tokenize(text))), "", "", "", ""]
    is_led = words[0] in _LED_BY and words[1] in WH_WORDS and words[2]
    return words[1:4] if is_led else words[:3]


def proposal(text: str) -> str:
    """The choice behind "what about" or "can I have"; '' for other texts.

    >>> proposal("what about the film"), proposal("could you please give me the book"), proposal("what is it")
    ('the film', 'me the book', '')
    """
    match = _PROPOSAL.match(text)
    return text[match.end() :].strip() if match else ""


def about_options(text: str, matcher: Matcher) -> Selection | None:
    """The options that a question is about, none or all of them; None where it is about something else."""
    if _ABOUT_ALL.search(text):
        return Selection((), 1.0)
    tokens = opening(matcher.tokens(text))
    words = [token.text for token in tokens]
    referred = select(text, matcher)
    if _asks_which(words):
        return referred if referred.ids else Selection(tuple(matcher.ids), 0.5)
    pointed = _POINTED.search(text)
    if pointed:
        return select(pointed[0], matcher)
    rest = list(filter(_is_subject, matcher.content(tokens)))
    if rest:
        return referred if referred.ids and _are_known(rest, words, matcher) else None
    return Selection(tuple(matcher.ids), 0.8) if _is_meta(words) else None


def _are_known(rest: Sequence[Token], words: Sequence[str], matcher: Matcher) -> bool:
    """Whether a question asks what something is, in words that the options have."""
    if not _is_meta(words) and words[0] not in ("what", "who"):
        return False
    named = [one for one in rest if one.number is None]
    # "what does … mean" may be about any word that was shown.
    means = not _MEANING.isdisjoint(words)
    is_who = words[0] == "who" and not _is_meta(words)
    return bool(named or not is_who) and all(matcher.covers(one, means) for one in named)


def _is_meta(words: Sequence[str]) -> bool:
    """Whether a question has words that only questions about the options have."""
    return words[-1] == "about" or not (META_WORDS - {"about"}).isdisjoint(words)


def _asks_which(words: Sequence[str]) -> bool:
    """ "which is newest", "which one …", "which of them …", "which came first"; but not "which film won"."""
    if words[0] != "which":
        return False
    if len(words) == 1 or words[1] in ("one", "of", "option", "ones"):
        return True
    return words[1] in AUXILIARIES or words[1] in ("came", "comes", "goes", "ended", "made", "won")


def _is_subject(token: Token) -> bool:
    """Whether a token is what a question is about, and no word that any question may have."""
    return token.text not in META_WORDS | POINTERS | REQUESTS | {"whats", "whos", "do"}


def restates(text: str, matcher: Matcher) -> Selection | None:
    """The options that the old question, said more exactly, names; None where it is another question."""
    tokens = opening(matcher.tokens(text))
    said = [one for one in tokens if one.text not in CLOSED_CLASS_WORDS]
    added = [one for one in said if one.stem not in matcher.asked]
    is_old = matcher.asked.issubset(one.stem for one in said)
    if not (is_old and added and all(map(matcher.covers, added))):
        return None
    selection = select(" ".join(map(attrgetter("text"), added)), matcher)
    return selection if selection.ids else None


_OTHER_ONE = re.compile(r"\bthe others?(?: ones?)?\b")


def understand(
    text: str, clarification: Clarification, question: str = "", chosen: Collection[str] = ()
) -> Intent:
    """What a reply to a clarification means.

    `question` is what was asked at first; `chosen` are options that were chosen before: "the other one" is none of
    them.
    """
    said = check_reply(text)
    bare = plain(said).strip(" ?.!…")
    if not re.search(r"\w", bare):
        return Intent(SKIP)
    matcher = Matcher(clarification, question)
    labelled = matcher.labelled(bare)
    if labelled:
        return _chosen(Selection((labelled,), 1.0), matcher)
    proposed = proposal(bare)
    if proposed:
        bare = proposed
    elif is_question(bare):
        return _question(said, bare, matcher)
    if chosen and _OTHER_ONE.search(bare):
        others = tuple(one for one in matcher.ids if one not in chosen)
        return _chosen(Selection(others, 1.0), matcher)
    return whole_intent(bare, matcher) or _choice(bare, matcher)


def _question(said: str, bare: str, matcher: Matcher) -> Intent:
    restated = restates(bare, matcher)
    if restated:
        return _chosen(restated, matcher)
    about = about_options(bare, matcher)
    if about:
        return Intent(ABOUT, about.ids, about.score)
    return Intent(QUESTION, question=without_greeting(said))


def without_greeting(text: str) -> str:
    """A question without the words before it.

    >>> without_greeting("Actually, who wrote Dune?"), without_greeting("No, wait: when?")
    ('who wrote Dune?', 'when?')
    """
    parts = re.split(r"(\W+)", text)
    start = 0
    while start < len(parts) - 1 and (
        not parts[start].strip() or parts[start].lower() in GREETINGS
    ):
        start += 2
    return "".join(parts[start:]) or text


def _choice(bare: str, matcher: Matcher) -> Intent:
    selection = select(bare, matcher)
    return _chosen(selection, matcher) if selection.ids else Intent(UNCLEAR, score=0.0)


def _chosen(selection: Selection, matcher: Matcher) -> Intent:
    kind = CHOOSE if len(selection.ids) < len(matcher.ids) else ALL
    return Intent(kind, selection.ids, round(selection.score, 3))
