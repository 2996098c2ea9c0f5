"""Questions and answers as statements: verbs, the gap that a question leaves, the answer that fills it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from whichsense.text.answers import parse_date
from whichsense.text.words import WH_WORDS
from whichsense.types import Span

# The English words that long answers know: a closed class each, in one place.


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DETERMINERS = _words(
    """a an the this that these those its his her their our my your each every any no some all both another"""
)
CONJUNCTIONS = _words(
    "and or but while whereas though although nor unless if because so"
)
PREPOSITIONS = _words(
    """in on at for from by with without during under over above below before after until since within between up to
    into onto of as through throughout outside inside near per about against among behind beyond along across aboard
    upon towards toward than via like around beside despite except"""
)
PARTICLES = _words("out off up down over")
# Words that open a phrase of time, place or condition.
PHRASE_STARTS = _words(
    """in on from since until before after between during at for with without under within when if as outside"""
)
# Words that open a clause inside another.
CLAUSE_STARTS = WH_WORDS | {"that"}
# Words before a noun: behind them "play" is no verb.
NOUN_STARTS = (
    DETERMINERS
    | PREPOSITIONS
    | CONJUNCTIONS
    | _words(
        """first second third fourth fifth sixth seventh eighth ninth tenth last original final present modern new old
        current former earlier later latest small large medium big long short full half early late high low male
        female young private single double free paid ancient wet dry heavy light hot cold open closed rear front upper
        lower main best most world live american british national real"""
    )
)

COPULAS = ("is", "was", "are", "were")
DO = ("did", "does", "do")
MODALS = ("will", "can", "may", "must", "should", "could", "would")
AUXILIARIES = _words(
    """is are was were be been being am has have had having do does did will would can could may might must shall
    should cannot"""
)
# Present forms of verbs with which documents give a value; both numbers.
VALUE_VERBS = _words(
    """cost costs weigh weighs pay pays get gets receive receives last lasts take takes give gives need needs require
    requires earn earns hold holds run runs open opens close closes begin begins start starts apply applies allow
    allows carry carries contain contains measure measures use uses draw draws go goes fall falls sound sounds stand
    stands serve serves end ends stay stays keep keeps expire expires rise rises remain remains attract attracts reach
    reaches offer offers accept accepts accrue accrues borrow borrows include includes qualify qualifies deliver
    delivers become becomes live lives charge charges repay repays work works yield yields cover covers meet meets form
    forms mean means make makes shut shuts bear bears leave leaves seat seats"""
)
# Past forms that do not end in -ed and are hardly anything else, and their base forms.
BASE_OF_PAST = {
    "began": "begin", "took": "take", "became": "become", "won": "win", "went": "go", "made": "make", "gave": "give",
    "got": "get", "held": "hold", "wrote": "write", "sang": "sing", "ran": "run", "led": "lead", "came": "come",
    "left": "leave", "lost": "lose", "fell": "fall", "rose": "rise", "stood": "stand", "sold": "sell",
    "built": "build", "found": "find", "kept": "keep", "met": "meet", "paid": "pay", "put": "put", "set": "set",
    "sent": "send", "spoke": "speak", "spent": "spend", "told": "tell", "beat": "beat", "cost": "cost", "drew": "draw",
    "sank": "sink", "saw": "see", "brought": "bring", "bought": "buy", "taught": "teach", "fought": "fight",
    "grew": "grow", "knew": "know", "flew": "fly", "broke": "break", "chose": "choose", "drove": "drive",
    "rode": "ride", "swam": "swim", "wore": "wear", "lay": "lie", "sat": "sit", "shot": "shoot", "struck": "strike",
}  # fmt: skip
# Other such forms: what questions ask with them is known, but not that they are verbs wherever they stand.
_MORE_PAST = {
    "had": "have", "did": "do", "hit": "hit", "bore": "bear", "hung": "hang", "ate": "eat", "drank": "drink",
    "caught": "catch", "threw": "throw", "hid": "hide", "slept": "sleep", "forbade": "forbid", "stuck": "stick",
    "crept": "creep", "meant": "mean", "felt": "feel", "thought": "think", "stole": "steal", "froze": "freeze",
    "split": "split", "cut": "cut", "quit": "quit", "let": "let", "shut": "shut", "said": "say", "heard": "hear",
}  # fmt: skip
PAST_OF_BASE = {base: past for past, base in (BASE_OF_PAST | _MORE_PAST).items()}
# Participles that do not end in -ed.
PARTICIPLES = _words(
    """begun taken become won gone made given got held written sung run led come left lost fallen risen sold built found
    kept met paid put set sent spoken spent told beaten cost drawn sunk seen brought bought taught fought grown known
    flown broken chosen driven ridden worn shot struck hit cut split shown laid born thrown hung broadcast"""
)
# Base forms that questions ask with behind "did", "does" or "will"; "do" stands for another verb, which the answer has.
BASES = (PAST_OF_BASE.keys() - {"do"}) | _words(
    """air appear arrive attend belong call change climb close compete compose contain create debut defeat die direct
    discover divorce earn end enter establish expire feature finish gain graduate happen host include introduce invade
    join kill land last launch live marry move name need open occur originate own paint pass perform play premiere
    produce publish qualify reach receive record reign release represent resign resume retire return score separate
    serve settle sign start stay stop support surrender turn use visit want weigh work apply allow charge require offer
    carry cover deliver borrow accept expect provide measure arrest elect vote affect extract hire rent store replace
    repair answer ask export import transfer recommend accrue approve insure warn remain drive declare border flood
    complete reopen adopt ban abolish legalize sail crash collapse explode erupt succeed rule"""
)
# Base forms whose present is a verb wherever it stands behind a noun.
PRESENT_BASES = BASES | _words("voice portray follow describe consist refer")
# Base forms whose last letter is doubled before -ed.
DOUBLING = _words("ban stop star plan drop")
# Forms of verbs whose subject may be somebody in a work.
APPEARING = _words(
    """be play plays played playing portray portrays portrayed voice voices voiced stars starred appears appeared has
    had sings sang co-stars co-starred reprised reprises"""
)

# Kinds of works, and the preposition that says that something happens there.
PREPOSITION_OF_WORK = dict.fromkeys(
    _words(
        """film movie novel book play musical opera ballet series serial miniseries sitcom soap drama show game manga
        comic anime cartoon poem story tale song novella episode franchise trilogy documentary painting sculpture
        programme program operetta oratorio"""
    ),
    "in",
) | dict.fromkeys(_words("album single record podcast soundtrack ep"), "on")
# Nouns that take "of" before a name: the 2005 revival of Doctor Who.
VERSION_NOUNS = _words(
    """version recording edition revival arrangement production adaptation cover remake performance reboot translation
    staging"""
)
WORK_NOUNS = VERSION_NOUNS | PREPOSITION_OF_WORK.keys()
# Words of a question and of a title for the same kind of work.
SAME_KINDS = (
    _words("film movie picture"),
    _words("novel book novella"),
    _words("series show sitcom serial drama programme program miniseries soap"),
    _words("song single recording track"),
    _words("play musical opera ballet operetta"),
)
# Kinds of documents: no part of a thing's name.
DOCUMENT_NOUNS = _words(
    """policy sheet list minutes manual notice handbook terms guide report circular agreement specification schedule
    regulations prospectus catalogue conditions tariff leaflet memo bulletin contract amendment fiche information
    declaration instructions brochure procedure summary requirements extract newsletter notes supplement decisions fees
    charges prices admission rates fares data warranty annex statement letter decision"""
)
# Nouns that have a capital in names alone: the Vietnam War, but a war.
COMMON_NOUNS = _words(
    """film movie show series play musical album song single book novel game building bridge tunnel dam station stadium
    tower church cathedral company firm club party agreement treaty act law pact union league line ship car magazine
    newspaper paper museum school university city team band park programme opera ballet poem statue monument palace
    castle hotel theatre airport canal railway road wall house temple hospital bank shop store war cup final finals king
    queen president minister street river island county day season world woman man girl boy state states north south
    east west grand prize award super national international association new old first general prime"""
)
NATIONAL_ADJECTIVES = _words(
    """American British English Scottish Welsh Irish French German Italian Spanish Portuguese Dutch Belgian Swiss
    Austrian Swedish Norwegian Danish Finnish Icelandic Polish Czech Hungarian Russian Soviet Ukrainian Greek Turkish
    Israeli Egyptian Indian Pakistani Chinese Japanese Korean Thai Filipino Indonesian Australian Canadian Mexican
    Brazilian Argentine Chilean Nigerian African European Asian Iranian Romanian Bulgarian Serbian Croatian"""
)


# English verbs: which words are verbs, where a question has its own, and their forms.

# Words with the numbers that commas and dots are part of, and marks.
_TOKEN = re.compile(r"\d+(?:[,.:]\d+)+\w*|[^\s,;:()“”\"?!]+|[,;:?!]")
_VOWELS = "aeiou"


def past(base: str) -> str:
    """The past form of a base form.

    >>> past("sink"), past("move"), past("marry"), past("play"), past("stop")
    ('sank', 'moved', 'married', 'played', 'stopped')
    """
    if base in PAST_OF_BASE:
        return PAST_OF_BASE[base]
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ied"
    if base in DOUBLING:
        return base + base[-1] + "ed"
    return base + "ed"


def third_person(base: str) -> str:
    """The form of a base form behind "he", "she" and "it", in the present.

    >>> third_person("have"), third_person("reach"), third_person("carry"), third_person("play")
    ('has', 'reaches', 'carries', 'plays')
    """
    if base in ("have", "go"):
        return {"have": "has", "go": "goes"}[base]
    if base.endswith(("s", "x", "z", "ch", "sh")):
        return base + "es"
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ies"
    return base + "s"


_PRESENT = frozenset(map(third_person, PRESENT_BASES))


def has_verb(text: str) -> bool:
    """Whether a text has a finite verb.

    >>> has_verb("Lon Chaney plays the Phantom"), has_verb("Cast and crew"), has_verb("The plays of Shakespeare")
    (True, False, False)
    """
    if find_verb(text) is not None:
        return True
    words = text.split()
    for place in range(1, len(words)):
        if words[place] in _PRESENT and not _starts_noun(words[place - 1]):
            return True
    return False


def find_verb(text: str) -> tuple[int, int] | None:
    """The span of the first finite verb of a text; None where it has none.

    >>> find_verb("the exterior was finished in"), find_verb("for recorded auditions")
    ((13, 16), None)
    """
    previous = ""
    for match in _TOKEN.finditer(text):
        if is_finite(match[0], previous):
            return match.span()
        previous = match[0]
    return None


def is_finite(word: str, previous: str) -> bool:
    """Whether a word can only be, or most likely is, a finite verb behind the word before it."""
    if word in AUXILIARIES:
        return True
    lowered = previous.lower()
    opens_noun = lowered in DETERMINERS or lowered in PREPOSITIONS
    if opens_noun or not previous or previous == ",":
        is_past = word.endswith("ed") or word in BASE_OF_PAST
        return is_past and not opens_noun and word.islower()
    if word in BASE_OF_PAST or word in VALUE_VERBS:
        return True
    return len(word) > 4 and word.endswith("ed") and word.islower() and "-" not in word


def is_participle(word: str) -> bool:
    """Whether a word is a past participle."""
    return word.endswith("ed") or word in PARTICIPLES


def find_base(words: Sequence[str]) -> int | None:
    """The place of the only base form behind a subject; None where there is none or a second one.

    >>> find_base("the play open on broadway".split()), find_base("the titanic sink".split())
    (2, 2)
    >>> find_base("the movie open season come out".split()) is None
    True
    """
    places = []
    for place in range(1, len(words)):
        if words[place] in BASES and not _starts_noun(words[place - 1]):
            places.append(place)
    return places[0] if len(places) == 1 and not _has_clause(words) else None


def find_participle(words: Sequence[str]) -> int | None:
    """The place of the only participle behind a subject; None where there is none or a second one.

    >>> find_participle("the film released in the united states".split())
    2
    """
    places = []
    for place in range(1, len(words)):
        word = words[place]
        is_verb = is_participle(word) and word.islower() and word != "united"
        if is_verb and not _starts_noun(words[place - 1]):
            places.append(place)
    return places[0] if len(places) == 1 and not _has_clause(words) else None


def _starts_noun(word: str) -> bool:
    if word in ("first", "last"):
        return False  # "first appeared", "last seen"
    return word.lower() in NOUN_STARTS or word.endswith(("'s", "’s"))


def _has_clause(words: Sequence[str]) -> bool:
    """Whether there is a clause inside: which verb is the question's own is then not certain."""
    return any(word in CLAUSE_STARTS for word in words)


# Take a question apart: a statement with a gap for its answer.

_TIME_NOUNS = ("year", "date", "day", "month", "decade", "time")
_PLACE_NOUNS = ("city", "country", "state", "place", "town", "county", "continent")
# Verbs whose object a date may be.
_CHOSEN = frozenset(("set", "choose", "give", "name"))
# Nouns of which "which … is the …" asks for a name.
_NAMED_NOUNS = (
    *("city", "country", "state", "team", "company", "band", "person", "player"),
    *("film", "movie", "song", "book", "animal", "planet", "actor", "actress", "river"),
)
# Words that say that a verb's clause is not all that is asked.
_TWO_QUESTIONS = re.compile(r"\b(?:and|or) (?:who|what|when|where|how|which)\b", re.I)
_SIZES = ("tall", "long", "high", "wide", "deep", "old")
_LASTING_STATES = ("valid", "open", "closed", "available")
# Prepositions that a question may end with: what they belong to is then not certain.
_STRANDED = PREPOSITIONS - {"since"}


@dataclass(frozen=True, slots=True)
class Gap:
    """A question as a statement with a gap for its answer."""

    before: str
    """What stands before the answer; empty where the answer comes first."""
    after: str
    """What stands behind it."""
    asks: str
    """What fills the gap: "name", "time", "place", "frequency", "number" or "value"."""
    wh: str
    """The words that ask: "when", "which team", "how many seasons"."""
    noun: str = ""
    """Of a number: what is counted. Of a value: what it may end with ("tall")."""

    @property
    def clause(self) -> str:
        """The question as part of a sentence: "when the Titanic sank".

        >>> Gap("the Titanic sank", "", "time", "when").clause
        'when the Titanic sank'
        """
        words = [self.wh, self.before, self.after]
        return " ".join(" ".join(words).split())


def parse_question(question: str) -> Gap | None:
    """The statement that a question asks to complete; None where its grammar is not certain.

    >>> parse_question("Who played the Joker in the 1989 film Batman?")
    Gap(before='', after='played the Joker in the 1989 film Batman', asks='name', wh='who', noun='')
    >>> parse_question("when did the Titanic sink").before
    'the Titanic sank'
    """
    words = question.strip(" ?.!").split()
    if len(words) < 3 or _TWO_QUESTIONS.search(question):
        return None
    first = words[0].lower()
    parse = _PARSERS.get(first)
    return parse(first, words[1:]) if parse is not None else None


def _parse_in_which(_: str, rest: list[str]) -> Gap | None:
    """in which city was X held: X was held …"""
    wh, *rest = rest
    place = _find_verb_place(rest)
    if wh.lower() not in ("what", "which") or place is None:
        return None
    asks = "time" if rest[place - 1].lower() in _TIME_NOUNS else "place"
    return _parse_adverb(f"in {wh} {' '.join(rest[:place])}", rest[place:], asks)


def _parse_when(wh: str, rest: list[str]) -> Gap | None:
    return _parse_adverb(wh, rest, "time")


def _parse_where(wh: str, rest: list[str]) -> Gap | None:
    return _parse_adverb(wh, rest, "place")


def _parse_who(wh: str, rest: list[str]) -> Gap | None:
    if rest[1:3] == ["the", "voice"] and rest[0] in ("does", "did"):
        return Gap("", " ".join(rest), "name", wh)
    if rest[0] in DO:
        return _parse_object(wh, rest, "name")
    if rest[-1].lower() in _STRANDED:
        return None
    return Gap("", " ".join(rest), "name", wh)


def _parse_what(wh: str, rest: list[str]) -> Gap | None:
    if rest[0] in COPULAS:
        return _parse_copula(wh, rest)
    if rest[0] in DO:
        return _parse_object(wh, rest, "value")
    place = _find_verb_place(rest)
    if place is None:
        return _parse_subject(wh, rest)
    return _parse_which(f"{wh} {' '.join(rest[:place])}", rest[place:])


def _parse_which(wh: str, behind: list[str]) -> Gap | None:
    """which team won X: … won X; what year did X open: X opened …"""
    noun, verb = wh.rsplit(maxsplit=1)[-1].lower(), behind[0]
    gap: Gap | None = None
    if noun == "date" and verb in DO and _CHOSEN.intersection(behind):
        gap = _parse_object(wh, behind, "value")
    elif noun in _TIME_NOUNS and (verb in DO or verb in COPULAS):
        gap = _parse_adverb(wh, behind, "time")
    elif noun in _PLACE_NOUNS and behind[-1].lower() == "in":
        gap = _parse_adverb(wh, behind[:-1], "place")
    elif verb in DO:
        gap = _parse_object(wh, behind, "value")
    elif behind[-1].lower() not in _STRANDED and _is_subject(wh, behind):
        gap = Gap("", " ".join(behind), "name", wh)
    return gap


def _is_subject(wh: str, behind: list[str]) -> bool:
    """Whether "which NOUN" is the subject of the verb behind it."""
    noun = wh.rsplit(maxsplit=1)[-1].lower()
    if noun.endswith("ly") or " of " in wh:
        return False
    if behind[0] not in AUXILIARIES:
        return True
    follows = behind[1].lower() if len(behind) > 1 else ""
    if follows in DETERMINERS:
        return noun in _NAMED_NOUNS or behind[0] in ("has", "have", "had")
    return is_participle(follows)


def _parse_subject(wh: str, rest: list[str]) -> Gap | None:
    """what causes rust: a verb in -s directly behind "what"."""
    if wh == "what" and rest[0].endswith("s") and not rest[0].endswith("ss"):
        if rest[-1].lower() in _STRANDED:
            return None
        return Gap("", " ".join(rest), "name", wh)
    return None


def _parse_copula(wh: str, rest: list[str]) -> Gap | None:
    """what is the capital of X: the capital of X is …"""
    verb, *subject = rest
    if len(subject) < 2 or subject[-1].lower() in _STRANDED:
        return None
    if subject[-1] in ("called", "named"):
        before = f"{' '.join(subject[:-1])} {verb} {subject[-1]}"
        return Gap(before, "", "value", wh)
    opens_noun = subject[0].lower() in DETERMINERS
    if not opens_noun and not subject[0][0].isupper():
        return None
    if find_participle(subject) is not None and not subject[0][0].islower():
        return None
    return Gap(f"{' '.join(subject)} {verb}", "", "value", wh)


def _parse_how(_: str, rest: list[str]) -> Gap | None:
    """The statement that a question with "how" asks to complete; `rest` stands behind "how"."""
    asked, verb = rest[0], rest[1]
    gap: Gap | None = None
    if len(rest) < 3:
        return None
    if asked == "many":
        gap = _parse_number(rest[1:])
    elif asked == "much":
        gap = _parse_amount(rest)
    elif asked in _SIZES and verb in COPULAS:
        gap = _parse_size(rest)
    elif asked == "long" and (verb in DO or verb in MODALS):
        gap = _parse_duration(rest[1:])
    elif asked == "often" and verb in COPULAS:
        gap = _parse_state("how often", rest[1:], "frequency")
    return gap


def _parse_amount(rest: list[str]) -> Gap | None:
    """how much does X cost: X costs …; how much leave does X get: X gets …"""
    for place, word in enumerate(rest):
        if word not in DO and word not in MODALS:
            continue
        gap = _parse_object(f"how {' '.join(rest[:place])}", rest[place:], "value")
        noun = " ".join(rest[1:place])
        return replace(gap, noun=f"of {noun}") if gap and noun else gap
    return None


def _parse_size(rest: list[str]) -> Gap | None:
    """how tall is X: X is … tall; how long is X valid: X is valid for …"""
    size, verb, *subject = rest
    if subject[-1].lower() in _STRANDED or _has_participle(subject):
        return None
    if size == "long" and subject[-1] in _LASTING_STATES and len(subject) > 1:
        before = f"{' '.join(subject[:-1])} {verb} {subject[-1]}"
        return Gap(before, "", "value", "how long", "for")
    return Gap(f"{' '.join(subject)} {verb}", "", "value", f"how {size}", size)


def _parse_duration(rest: list[str]) -> Gap | None:
    """how long does X last for Y: X lasts … for Y; how long does X keep Y: X keeps Y for …"""
    clause = _uninvert(rest)
    if clause is None:
        return None
    before, after = clause
    if before.split()[-1] in ("lasts", "last", "lasted", "takes", "take", "took"):
        return Gap(before, after, "value", "how long")
    return Gap(f"{before} {after}".strip(), "", "value", "how long", "for")


def _parse_number(words: list[str]) -> Gap | None:
    """how many seasons of X are there: there are … seasons of X."""
    place = _find_verb_place(words)
    if place is None:
        return None
    counted, behind = " ".join(words[:place]), words[place:]
    wh = f"how many {counted}"
    gap: Gap | None = None
    if behind[0] in DO or behind[0] in MODALS:
        clause = _parse_object(wh, behind, "number")
        gap = replace(clause, noun=counted) if clause is not None else None
    elif behind[0] in COPULAS and behind[1:2] == ["there"]:
        after = " ".join(behind[2:])
        gap = Gap(f"there {behind[0]}", after, "number", wh, counted)
    elif behind[-1].lower() not in _STRANDED and _counts_subject(behind):
        gap = Gap("", " ".join(behind), "number", wh, counted)
    return gap


def _counts_subject(behind: list[str]) -> bool:
    """Whether what is counted does what the verb says: "have won", not "have they won"."""
    has_auxiliary = behind[0] in ("have", "has", "had")
    return not has_auxiliary or any(map(is_participle, behind[1:2]))


def _find_verb_place(words: Sequence[str]) -> int | None:
    """The place of the first verb behind a noun."""
    for place in range(1, len(words)):
        word = words[place]
        if word in CLAUSE_STARTS or words[place - 1].endswith(","):
            return None
        if is_finite(word, words[place - 1]):
            return place
    return None


def _parse_object(wh: str, rest: list[str], asks: str) -> Gap | None:
    """who did X marry: X married …"""
    clause = _uninvert(rest)
    if clause is None:
        return None
    before, after = clause
    if has_verb(f"it {after}"):
        return None
    if after and after.split()[-1].lower() in _STRANDED and len(after.split()) == 1:
        return Gap(f"{before} {after}", "", asks, wh)
    first = after.split()[0].lower() if after else "in"
    is_known = first in PREPOSITIONS or first in ("a", "an", "each", "every")
    return Gap(before, after, asks, wh) if is_known else None


def _parse_adverb(wh: str, rest: list[str], asks: str) -> Gap | None:
    """when was X released in Y: X was released in Y …"""
    if rest[0] in COPULAS and len(rest) > 1:
        return _parse_state(wh, rest, asks)
    clause = _uninvert(rest)
    if clause is None:
        return None
    return Gap(" ".join(filter(None, clause)), "", asks, wh)


def _parse_state(wh: str, rest: list[str], asks: str) -> Gap | None:
    """when was X released, where is X: the verb goes behind the subject."""
    verb, *subject = rest
    if any(word.endswith("ing") and word.islower() for word in subject[1:]):
        return None  # "is X being held", "is X coming out"
    place = find_participle(subject)
    if subject[1:3] in (["last", "time"], ["first", "time"]):
        return Gap(f"{' '.join(subject)} {verb}", "", asks, wh)
    if place is None:
        if subject[-1].lower() in _STRANDED - {"from"} or _has_participle(subject):
            return None
        if subject[-1].lower() == "from":
            subject, verb = subject[:-1], f"{verb} from"
        return Gap(f"{' '.join(subject)} {verb}", "", asks, wh)
    if subject[place - 1] in ("first", "last", "originally", "officially"):
        place -= 1
    words = [*subject[:place], verb, *subject[place:]]
    if place == 0 or words[-1].lower() in _STRANDED:
        return None
    return Gap(" ".join(words), "", asks, wh)


def _has_participle(words: list[str]) -> bool:
    return any(is_participle(word) for word in words[1:])


def _uninvert(rest: list[str]) -> tuple[str, str] | None:
    """Subject with its verb, and what follows, of "did X win Y" or "will X open"."""
    auxiliary, *words = rest
    place = find_base(words)
    if place is None:
        return None
    verb = words[place]
    if auxiliary == "did":
        verb = past(verb)
    elif auxiliary == "does":
        verb = third_person(verb)
    elif auxiliary in MODALS:
        verb = f"{auxiliary} {verb}"
    elif auxiliary != "do":
        return None
    subject = " ".join(words[:place])
    after = words[place + 1 :]
    if after[:1] == ["and"]:
        return None  # "start and end"
    if after and after[0] in PARTICLES:
        verb, after = f"{verb} {after[0]}", after[1:]
    if after[:1] == ["place"] and words[place] == "take":
        verb, after = f"{verb} place", after[1:]
    return f"{subject} {verb}", " ".join(after)


_PARSERS: dict[str, Callable[[str, list[str]], Gap | None]] = {
    "who": _parse_who,
    "what": _parse_what,
    "which": _parse_what,
    "when": _parse_when,
    "where": _parse_where,
    "how": _parse_how,
    "in": _parse_in_which,
}


# State answers: one as a statement, several of one form in one sentence that says once what they
# share.

_PERIOD = re.compile(
    r"(?:the )?(?:early |late |mid-?)?(?:\d{3,4}s|\d{1,2}(?:st|nd|rd|th) century)|(?:spring|summer|autumn|winter)"
    r"(?: of)? \d{4}",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"\d{1,2}[:.]\d{2}(?: ?[ap]\.?m\.?)?|\d{1,2} ?[ap]\.?m\.?", re.I)
_WEEKDAY = re.compile(r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?")
_ADVERBIAL = re.compile(
    r"(?:in|on|at|from|since|after|before|between|during|until|around|by|near|within|with|upon)\b",
    re.IGNORECASE,
)
_FREQUENCY = re.compile(
    r"(?:every|each|once|twice|daily|weekly|monthly|yearly|annually|\w+ times)\b", re.I
)
_PLACE_BEFORE = re.compile(
    r"\b(in|at|on|near|outside|off|around|through) (?:the )?$", re.IGNORECASE
)
_ARTICLE_BEFORE = re.compile(r"\b(the|an?) $", re.IGNORECASE)
_FIGURE = re.compile(r"[\d.,]+(?: (?:million|billion|thousand))?|[a-z]+(?:-[a-z]+)?")
_PLURALS = {"is": "are", "was": "were", "has": "have"}
# Words that mean another time to whoever reads the statement.
_RELATIVE = re.compile(
    r"\b(?:(?:this|next|last) (?:year|season|month|week|time)|now|today|yet|so far|upcoming"
    r"|you|your|I|my|we|our|they)\b",
    re.I,
)
_DOUBLED = re.compile(r"\b(\w+) \1\b", re.IGNORECASE)
_LONGEST_ANSWER = 12  # words


@dataclass(frozen=True, slots=True)
class Statement:
    """A question's answer as a sentence, in its three parts."""

    before: str
    answer: str
    """With its preposition, its article or what it counts."""
    after: str

    @property
    def text(self) -> str:
        body = " ".join(filter(None, (self.before, self.answer, self.after)))
        return f"{body[0].upper()}{body[1:].rstrip('.')}."


def statement(question: str, answer: str, span: Span | None) -> Statement | None:
    """The answer in the question's gap; None where that is not surely grammatical.

    `span` is where the evidence gives the answer: its preposition and its article are taken over.

    >>> statement("Who played the Joker in the 1989 film Batman?", "Jack Nicholson", None).text
    'Jack Nicholson played the Joker in the 1989 film Batman.'
    >>> statement("When did the Titanic sink?", "15 April 1912", None).text
    'The Titanic sank on 15 April 1912.'
    >>> statement("How many seasons of Lost are there?", "six", None).text
    'There are six seasons of Lost.'
    """
    gap = parse_question(question)
    if gap is None or not answer or len(answer.split()) > _LONGEST_ANSWER:
        return None
    if _RELATIVE.search(question):
        return None
    filling = _filling(gap, answer, span)
    after = gap.after
    if not gap.before:
        after = _agree(after, filling)
    if not filling or (not after and not gap.before):
        return None
    stated = Statement(gap.before, filling, after)
    return None if _DOUBLED.search(stated.text) else stated


def _filling(gap: Gap, answer: str, span: Span | None) -> str:
    """The answer in the form that fits the gap; empty where there is none."""
    if gap.asks == "time":
        return _time_phrase(answer)
    if gap.asks == "place":
        return _place_phrase(gap, answer, span)
    if gap.asks == "number":
        return _counted(gap, answer)
    if gap.asks == "frequency":
        return answer if _FREQUENCY.match(answer) else ""
    if gap.noun:
        return _measured(gap.noun, answer)
    return _with_article(answer, span)


def _measured(noun: str, answer: str) -> str:
    """A duration behind "for", or a size before "tall"."""
    if noun == "for":
        return answer if answer.startswith(("for ", "until ")) else f"for {answer}"
    if noun == "old" and answer.isdigit():
        return f"{answer} years old"
    if noun.startswith("of "):
        has_noun = noun.rsplit(maxsplit=1)[-1].lower() in answer.lower()
        is_measure = re.fullmatch(r"\S+ [a-z]+", answer) is not None
        return answer if has_noun else f"{answer} {noun}" if is_measure else ""
    has_unit = re.search(r"\d\D* \w+$|^[a-z]+ \w+$", answer)
    return f"{answer} {noun}" if has_unit and noun not in answer else answer


def _time_phrase(answer: str) -> str:
    if _ADVERBIAL.match(answer):
        return answer
    date = parse_date(answer)
    if date is not None and date.known_parts:
        return f"on {answer}" if date.day is not None else f"in {answer}"
    if _PERIOD.fullmatch(answer):
        return f"in {answer}"
    if _CLOCK.fullmatch(answer):
        return f"at {answer}"
    return f"on {answer}" if _WEEKDAY.fullmatch(answer) else ""


def _place_phrase(gap: Gap, answer: str, span: Span | None) -> str:
    if gap.before.endswith(" from"):
        return answer
    if _ADVERBIAL.match(answer):
        return answer
    stated = _PLACE_BEFORE.search(_words_before(span))
    if stated:
        return stated[0].lower() + answer
    is_name = answer[:1].isupper() and "," in answer
    return f"in {answer}" if is_name else ""


def _counted(gap: Gap, answer: str) -> str:
    """A number with what it counts, which the answer may name already."""
    noun = gap.noun.split()[0].lower().rstrip("s")
    if noun in answer.lower():
        head = gap.noun.split(maxsplit=1)
        rest = head[1] if len(head) > 1 else ""
        is_last = answer.lower().rstrip("s").endswith(noun)
        return f"{answer} {rest}".strip() if is_last else ""
    if not _FIGURE.fullmatch(answer):
        return ""
    return f"{answer} {gap.noun}"


def _with_article(answer: str, span: Span | None) -> str:
    """The answer with the article that it has in the evidence."""
    article = _ARTICLE_BEFORE.search(_words_before(span))
    if not article or _ARTICLE_BEFORE.match(answer.split(maxsplit=1)[0] + " "):
        return answer
    return f"{article[1].lower()} {answer}"


def _words_before(span: Span | None) -> str:
    return span.passage.text[max(0, span.start - 20) : span.start] if span else ""


def _agree(after: str, answer: str) -> str:
    """The words behind an answer that comes first, with a verb that fits its number; empty where it has none."""
    verb, _, rest = after.partition(" ")
    is_team = answer.startswith("the ") and answer.endswith("s")
    is_plural = is_team or bool(re.search(r" and |, ", answer))
    if not is_plural:
        is_several = verb in ("are", "were", "have") and not answer.endswith("s")
        return "" if is_several else after
    if verb in _PLURALS:
        return f"{_PLURALS[verb]} {rest}"
    return "" if verb.endswith("s") else after


def list_statements(statements: Sequence[Statement]) -> str:
    """One sentence for all statements, without its full stop; empty where they are not of one form.

    >>> films = [Statement("", "Lon Chaney", "plays the Phantom in the 1925 film"),
    ...          Statement("", "Claude Rains", "plays the Phantom in the 1943 film")]
    >>> list_statements(films)
    'Lon Chaney plays the Phantom in the 1925 film and Claude Rains in the 1943 film'
    >>> list_statements([Statement("the novel was published", "in 1964", ""),
    ...                  Statement("the film was published", "in 1971", "")])
    'the novel was published in 1964 and the film in 1971'
    """
    if len(statements) < 2:
        return ""
    if all(not one.before for one in statements):
        items = _share_start(
            [one.after.split() for one in statements],
            [one.answer for one in statements],
        )
    elif all(one.before and not one.after for one in statements):
        items = (
            _share_beginning(statements)
            or _share_end(statements)
            or _share_noun(statements)
        )
    else:
        items = []
    return join(items)


def _share_start(tails: Sequence[list[str]], answers: Sequence[str]) -> list[str]:
    """Items whose verb stands behind the answer: "A plays X in Y", "B in Z"."""
    shared = _shared_length(tails)
    while shared and not _starts_rest(tails, shared):
        shared -= 1
    if not shared:
        return []
    rests = [tail[shared:] for tail in tails]
    rests = [rests[0], *_without_repeated_name(rests)[1:]]
    items = [f"{answers[0]} {' '.join(tails[0])}"]
    for answer, rest in zip(answers[1:], rests[1:], strict=True):
        items.append(f"{answer} {' '.join(rest)}")
    return items


def _share_beginning(statements: Sequence[Statement]) -> list[str]:
    """Items whose subject and verb are the same: "X opened in A on 1 May", "in B on 2 May"."""
    heads = [one.before.split() for one in statements]
    shared = _shared_length(heads)
    while shared and not _starts_rest(heads, shared):
        shared -= 1
    if not shared or find_verb(" ".join(heads[0][:shared])) is None:
        return []
    items = [f"{statements[0].before} {statements[0].answer}"]
    for head, one in zip(heads[1:], statements[1:], strict=True):
        items.append(f"{' '.join(head[shared:])} {one.answer}")
    return items


def _share_end(statements: Sequence[Statement]) -> list[str]:
    """Items whose verb is the same behind another subject: "X opened in 1964", "Y in 1971"."""
    heads = [one.before.split()[::-1] for one in statements]
    shared = _shared_length(heads)
    common = " ".join(heads[0][:shared][::-1])
    verb = find_verb(common) if common else None
    if verb is None or not all(_is_adverbial(one.answer) for one in statements):
        return []
    verb_words = len(common[verb[0] :].split())
    items = [f"{statements[0].before} {statements[0].answer}"]
    for one in statements[1:]:
        subject = one.before.split()[:-verb_words]
        if not subject:
            return []
        items.append(f"{' '.join(subject)} {one.answer}")
    return items


def _share_noun(statements: Sequence[Statement]) -> list[str]:
    """Items about the same property: "the population of X is 1", "that of Y is 2"."""
    heads = [one.before.split() for one in statements]
    shared = _shared_length(heads)
    while shared and heads[0][shared - 1] != "of":
        shared -= 1
    if not shared or heads[0][0].lower() != "the":
        return []
    items = [f"{statements[0].before} {statements[0].answer}"]
    for head, one in zip(heads[1:], statements[1:], strict=True):
        items.append(f"that of {' '.join(head[shared:])} {one.answer}")
    return items


def _is_adverbial(answer: str) -> bool:
    return answer.split(maxsplit=1)[0].lower() in PREPOSITIONS


def _shared_length(rows: Sequence[list[str]]) -> int:
    """How many words all rows begin with."""
    shared = 0
    for column in zip(*rows, strict=False):
        if len(set(column)) > 1:
            break
        shared += 1
    return shared


def _starts_rest(rows: Sequence[list[str]], shared: int) -> bool:
    """Whether behind the shared words a phrase of its own begins in every row."""
    return all(len(row) > shared and row[shared] in PHRASE_STARTS for row in rows)


def _without_repeated_name(rests: list[list[str]]) -> list[list[str]]:
    """Rests without the name with which all end, behind "the 1943 film"."""
    shared = _shared_length([rest[::-1] for rest in rests])
    while shared:
        if all(_ends_with_work(rest[:-shared]) for rest in rests):
            return [rest[:-shared] for rest in rests]
        shared -= 1
    return rests


def _ends_with_work(rest: list[str]) -> bool:
    return bool(rest) and rest[-1] in WORK_NOUNS


def join(items: Sequence[str]) -> str:
    """Items with commas and "and"; with semicolons where an item has a comma itself.

    >>> join(["a", "b"]), join(["a", "b", "c"]), join(["a, x", "b", "c"])
    ('a and b', 'a, b, and c', 'a, x; b; and c')
    """
    if len(items) < 2:
        return "".join(items)
    if len(items) == 2 and any(", " in item for item in items):
        return ", and ".join(items)
    if any(", " in item for item in items):
        return "; ".join([*items[:-1], f"and {items[-1]}"])
    if len(items) == 2:
        return " and ".join(items)
    return ", ".join([*items[:-1], f"and {items[-1]}"])
