"""The options of a clarification: a name for each reading, and the category that leads them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from whichsense.models.compact.phrases import (
    FUNCTION_KINDS,
    AlignedRewrite,
    Kind,
    Phrase,
    Ranker,
    Words,
    by_expectation,
    follows_which,
    kind_of,
    list_phrases,
    phrase_features,
    phrase_text,
    split_words,
)
from whichsense.text.answers import parse_date

# Small closed sets of words by which options are typed: countries, regions, languages, ages, genders.

_COUNTRIES = """
afghanistan|albania|algeria|andorra|angola|argentina|armenia|australia|austria|azerbaijan|bahamas|bahrain|bangladesh|
barbados|belarus|belgium|belize|benin|bhutan|bolivia|bosnia|botswana|brazil|britain|brunei|bulgaria|burkina faso|burma|
burundi|cambodia|cameroon|canada|chad|chile|china|colombia|congo|costa rica|croatia|cuba|cyprus|czech republic|czechia|
denmark|djibouti|dominica|dominican republic|ecuador|egypt|el salvador|england|eritrea|estonia|eswatini|ethiopia|fiji|
finland|france|gabon|gambia|georgia|germany|ghana|great britain|greece|grenada|guatemala|guinea|guyana|haiti|honduras|
hong kong|hungary|iceland|india|indonesia|iran|iraq|ireland|israel|italy|ivory coast|jamaica|japan|jordan|kazakhstan|
kenya|kosovo|kuwait|kyrgyzstan|laos|latvia|lebanon|lesotho|liberia|libya|liechtenstein|lithuania|luxembourg|madagascar|
malawi|malaysia|maldives|mali|malta|mauritania|mauritius|mexico|moldova|monaco|mongolia|montenegro|morocco|mozambique|
myanmar|namibia|nepal|netherlands|new zealand|nicaragua|niger|nigeria|north korea|north macedonia|northern ireland|
norway|oman|pakistan|palestine|panama|papua new guinea|paraguay|peru|philippines|poland|portugal|qatar|romania|russia|
rwanda|samoa|san marino|saudi arabia|scotland|senegal|serbia|sierra leone|singapore|slovakia|slovenia|somalia|
south africa|south korea|south sudan|soviet union|spain|sri lanka|sudan|suriname|sweden|switzerland|syria|taiwan|
tajikistan|tanzania|thailand|togo|tonga|trinidad|tunisia|turkey|turkmenistan|uganda|uk|u.k|ukraine|
united arab emirates|united kingdom|united states|united states of america|uruguay|us|u.s|usa|u.s.a|america|uzbekistan|
vanuatu|vatican|venezuela|vietnam|wales|yemen|zambia|zimbabwe
"""
_REGIONS = """
africa|alabama|alaska|antarctica|arizona|arkansas|asia|british columbia|california|caribbean|central america|colorado|
connecticut|delaware|eu|europe|european union|florida|hawaii|idaho|illinois|indiana|iowa|kansas|kentucky|latin america|
louisiana|maine|maryland|massachusetts|mediterranean|michigan|middle east|minnesota|mississippi|missouri|montana|
nebraska|nevada|new england|new hampshire|new jersey|new mexico|new york|north america|north carolina|north dakota|
oceania|ohio|oklahoma|ontario|oregon|pennsylvania|quebec|queensland|rhode island|scandinavia|south america|
south carolina|south dakota|tasmania|tennessee|texas|utah|vermont|victoria|virginia|washington|west virginia|
wisconsin|wyoming|worldwide|globally|internationally
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split("|"))


COUNTRIES = _names(_COUNTRIES)
REGIONS = _names(_REGIONS)
_LANGUAGES = _names(
    "arabic|chinese|danish|dutch|english|finnish|french|german|greek|hebrew|hindi|hungarian|italian|japanese|korean|latin"
    "|norwegian|polish|portuguese|russian|spanish|swedish|tamil|telugu|turkish|welsh"
)
_NATIONALITIES = _names(
    "american|australian|british|canadian|indian|irish|mexican|scottish|englishman"
)
_AGES = _names(
    "adult|young|child|teenager|teenage|baby|infant|elderly|older|younger|old"
)
_GENDERS = _names(
    "man|woman|men|women|male|female|boy|girl|men's|women's|mens|womens|boys|girls|male singer|female singer"
)
# Without them a phrase says something else: "since 1960" is not "1960".
MEANINGFUL_PREPOSITIONS = _names(
    "since|until|before|after|between|without|above|below|over|under|near|outside|against|despite|beyond"
)
# Nouns that may ask for options that stand before them: "Which version: the British, or the American?".
_CATEGORY_NOUNS = _names(
    "act|airport|album|anthem|battle|book|bridge|building|cast|castle|champion|championship|chapter|church|class|club"
    "|college|committee|competition|constitution|contract|crew|cup|department|district|division|edition|election|empire"
    "|episode|event|festival|film|final|game|generation|government|hall|hospital|island|league|line|meeting|model"
    "|monarch|movie|museum|novel|office|palace|part|party|plan|plant|player|policy|president|price|production"
    "|province|race|rate|record|release|remake|republic|rocket|round|school|season|series|ship|show|single|song"
    "|station|stadium|state|store|system|team|term|theatre|title|tour|tournament|tower|treaty|university|version|volume"
    "|war"
)
_THE = re.compile(r"^(?:in |the )+")


def category_noun(word: str) -> str:
    """The word in the singular where it names a kind of thing that options may be of; otherwise nothing.

    >>> category_noun("films"), category_noun("series"), category_noun("born")
    ('film', 'series', '')
    """
    for form in (word, word.removesuffix("s")):
        if form in _CATEGORY_NOUNS:
            return form
    return ""


def closed_set(text: str) -> str:
    """ "language", "nationality", "age", "gender" or "", by the whole text without its article.

    >>> [closed_set(text) for text in ("the adult", "a man", "Japanese", "the film")]
    ['age', 'gender', 'language', '']
    """
    bare = re.sub(r"^(?:in |the |an? )+", "", text.lower())
    sets = {
        "language": _LANGUAGES,
        "nationality": _NATIONALITIES,
        "age": _AGES,
        "gender": _GENDERS,
    }
    for name, members in sets.items():
        if bare in members:
            return name
    return ""


def place_kind(text: str) -> str:
    """ "country", "region" or "", by a whole name or all names of a list.

    >>> [place_kind(text) for text in ("the United States", "Ireland and the UK", "Texas", "Paris")]
    ['country', 'country', 'region', '']
    """
    parts = [_THE.sub("", part) for part in re.split(r" and | or ", text.lower())]
    if all(part in COUNTRIES for part in parts):
        return "country"
    if all(part in COUNTRIES or part in REGIONS for part in parts):
        return "region"
    return ""


# What options have in common, and the words that ask for it: "Which version", "As of which year",
# "Which one".

Features = dict[str, float]
# Categories that fit many questions, and what may stand before "which" with them.
_COMMON = (
    "one year location country time|period time time|frame place region date person team period area type origin"
    " type|of|location position role nationality version season event era city state generation age name month"
    " language movie part episode series sport format edition gender age|group"
)
_PREPOSITIONS = {
    "year": ("in", "as of"),
    "country": ("in",),
    "location": ("in",),
    "place": ("in",),
    "region": ("in",),
    "time period": ("in", "during"),
    "date": ("as of", "on"),
}
_CLOSED_SETS = {"gender": "gender", "age": "age group", "language": "language"}
_WORD_WEIGHT = 0.3
_NOUN_KINDS = (Kind.WORD, Kind.ING, Kind.ED)


@dataclass(frozen=True, slots=True)
class Lead:
    """The words before the options."""

    category: str
    preposition: str = ""

    @property
    def text(self) -> str:
        """
        >>> Lead("year", "as of").text, Lead("one").text
        ('As of which year', 'Which one')
        """
        which = f"{self.preposition} which" if self.preposition else "which"
        return f"{which[0].upper()}{which[1:]} {self.category}"


@dataclass(frozen=True)
class Choice:
    """A question, its rewrites, and the phrase that was chosen of each."""

    question: Words
    rewrites: Sequence[AlignedRewrite]
    phrases: Sequence[Phrase]

    @property
    def options(self) -> list[str]:
        texts = []
        for rewrite, phrase in zip(self.rewrites, self.phrases, strict=True):
            texts.append(phrase_text(rewrite, phrase))
        return texts


def choose_lead(choice: Choice, ranker: Ranker) -> Lead:
    """The lead that fits the options best."""
    candidates = lead_candidates(choice)
    best = max(candidates, key=lambda lead: ranker.score(candidates[lead]))
    kinds = {option_kind(option) for option in choice.options}
    # Small closed sets are too rare to be learnt.
    if best.category == "one" and len(kinds) == 1:
        return Lead(_CLOSED_SETS.get(kinds.pop(), "one"))
    return best


def lead_candidates(choice: Choice) -> dict[Lead, Features]:
    """Every lead that may be meant, with its features: the lead, or where its noun is from, with each signal of the
    options."""
    signals = list(_signals(choice))
    sources: dict[Lead, list[str]] = {}
    for category in _COMMON.split():
        name = category.replace("|", " ")
        for preposition in ("", *_PREPOSITIONS.get(name, ())):
            sources[Lead(name, preposition)] = [name]
    for source, noun in _nouns(choice):
        sources.setdefault(Lead(noun), []).append(f"<{source}>")
        sources.setdefault(Lead(f"type of {noun}"), []).append(f"<type of {source}>")
    candidates = {}
    for lead, names in sources.items():
        features: Features = {}
        for name in [*names, f"({lead.preposition})"]:
            features[name] = 1.0
            for signal, weight in signals:
                features[f"{name} & {signal}"] = weight
        candidates[lead] = features
    return candidates


def _signals(choice: Choice) -> Iterator[tuple[str, float]]:
    """What is known of the options, each with its weight: forms count in full, single words little."""
    options = choice.options
    bare = choice.question.bare
    neighbours = [
        ("before", _neighbours(choice, -1)),
        ("before two", _two_before(choice)),
        ("behind", _neighbours(choice, 1)),
    ]
    for name, tokens in [("is", list(map(option_kind, options))), *neighbours]:
        for token, count in Counter(tokens).items():
            how_many = "all" if count == len(options) else "some"
            yield f"{how_many} {name} {token}", 1.0
    yield f"{min(len(options), 5)} options", 0.5
    yield f"asks {' '.join(bare[:1])}", 1.0
    yield f"asks {' '.join(bare[:2])}", _WORD_WEIGHT
    for word in sorted({*bare[1:]}):
        yield f"asked {word}", _WORD_WEIGHT
    inside: set[str] = set()
    for option in options:
        words = split_words(option).bare
        inside.update(words)
        yield f"ends {words[-1] if words else ''}", 2 * _WORD_WEIGHT
    for word in sorted(inside):
        yield f"has {word}", _WORD_WEIGHT


def option_kind(option: str) -> str:
    """The form of an option.

    >>> [option_kind(text) for text in ("2017", "from 2001 to 2004", "Japan", "the film", "in Rome", "Old Dan")]
    ['year', 'years', 'country', 'noun', 'in', 'name']
    """
    words = split_words(option)
    kinds = [kind_of(words.word(place)) for place in range(len(words))]
    if not kinds:
        return "nothing"
    listed = place_kind(option) or closed_set(option)
    if listed:
        return listed
    if len(kinds) == 1 and kinds[0] is not Kind.NAME:
        return str(kinds[0].value)
    return _phrase_kind(words.bare[0], kinds)


def _phrase_kind(first: str, kinds: Sequence[Kind]) -> str:
    timed = [kind in (Kind.YEAR, Kind.DATE) for kind in kinds]
    kind = kinds[0]
    if sum(timed) > 1 or (any(timed) and kind is Kind.PREPOSITION):
        return "years"
    if kind is Kind.PREPOSITION:
        return first
    if kind in (Kind.WH, Kind.ORDINAL, Kind.YEAR, Kind.DATE, Kind.NUMBER):
        return f"{kind.value} …"
    if Kind.NAME in kinds:
        return "name"
    return "noun" if kind is Kind.ARTICLE else "words"


def _neighbours(choice: Choice, side: int) -> list[str]:
    """The word before (-1) or behind (1) each phrase."""
    found = []
    for rewrite, phrase in zip(choice.rewrites, choice.phrases, strict=True):
        place = phrase.start - 1 if side < 0 else phrase.end
        inside = 0 <= place < len(rewrite.words)
        found.append(rewrite.words.bare[place] if inside else "")
    return found


def _two_before(choice: Choice) -> list[str]:
    """The two words before each phrase: "as of"."""
    found = []
    for rewrite, phrase in zip(choice.rewrites, choice.phrases, strict=True):
        start = phrase.start
        found.append(" ".join(rewrite.words.bare[max(start - 2, 0) : start]))
    return found


def _nouns(choice: Choice) -> Iterator[tuple[str, str]]:
    """Nouns that may be the category, each with where it is from."""
    for source, side in (("before", -1), ("behind", 1)):
        shared = set(_neighbours(choice, side))
        noun = shared.pop() if len(shared) == 1 else ""
        if noun and kind_of(noun) in _NOUN_KINDS:
            yield source, noun
    ends = {" ".join(split_words(option).bare[-1:]) for option in choice.options}
    if len(ends) == 1:
        noun = ends.pop()
        if noun and kind_of(noun) in _NOUN_KINDS:
            yield "end", noun
    yield from _asked_nouns(choice.question)


def _asked_nouns(question: Words) -> Iterator[tuple[str, str]]:
    """The noun behind a wh-word ("What airline …"), and the one before the first preposition ("the president of")."""
    kinds = question.kinds
    for place, kind in enumerate(kinds):
        following = place + 1
        if kind is Kind.WH and following < len(kinds):
            if kinds[following] in _NOUN_KINDS:
                yield "asked", question.bare[following]
            break
    for place in range(1, len(kinds)):
        if kinds[place] is Kind.PREPOSITION:
            if kinds[place - 1] in _NOUN_KINDS:
                yield "subject", question.bare[place - 1]
            break


# The phrase that each rewrite is offered by, no two alike where that can be.

_LONGEST_MOVE = (
    0.25  # of expected overlap, that is given up so that no phrase is part of another
)
_Filter = Callable[[AlignedRewrite, Phrase], bool]


def always(rewrite: AlignedRewrite, phrase: Phrase) -> bool:
    """Let every phrase through."""
    return True


def choose_phrases(
    rewrites: Sequence[AlignedRewrite], ranker: Ranker, keep: _Filter = always
) -> list[Phrase]:
    """One phrase for each rewrite, among those that `keep` lets through where there are such. Where two say the same,
    or one says less than another, the one that loses least by another phrase takes it."""
    ranked = [rank_phrases(rewrite, ranker, keep) for rewrite in rewrites]
    return distinct_phrases(rewrites, ranked)


def rank_phrases(
    rewrite: AlignedRewrite, ranker: Ranker, keep: _Filter = always
) -> list[tuple[Phrase, float]]:
    """The best phrases of a rewrite with how good each is expected to be, best first."""
    phrases = list_phrases(rewrite)
    phrases = [one for one in phrases if keep(rewrite, one)] or phrases
    texts = [phrase_text(rewrite, phrase) for phrase in phrases]
    scores = [ranker.score(phrase_features(rewrite, phrase)) for phrase in phrases]
    expected = by_expectation(texts, scores)
    return [(phrases[place], value) for place, value in expected]


def distinct_phrases(
    rewrites: Sequence[AlignedRewrite], ranked: Sequence[Sequence[tuple[Phrase, float]]]
) -> list[Phrase]:
    """The best phrase of each, moved on to another one where it is equal to, or part of, what another one says."""
    contents = []  # of each rewrite, the content of each phrase
    for rewrite, own in zip(rewrites, ranked, strict=True):
        contents.append([_content(rewrite, phrase) for phrase, _ in own])
    chosen = [0] * len(rewrites)
    for _ in range(len(rewrites)):
        moves = []
        for number, rank in enumerate(chosen):
            others = _others(contents, chosen, number)
            content = contents[number][rank]
            if not any(content <= other for other in others):
                continue
            most = _LONGEST_MOVE if content not in others else float("inf")
            for other in range(rank + 1, len(ranked[number])):
                loss = ranked[number][rank][1] - ranked[number][other][1]
                apart = not any(contents[number][other] <= one for one in others)
                if apart and loss <= most:
                    moves.append((loss, number, other))
                    break
        if not moves:
            break
        _, number, other = min(moves)
        chosen[number] = other
    phrases = [ranked[number][rank][0] for number, rank in enumerate(chosen)]
    return _with_articles(rewrites, phrases)


def _others(
    contents: Sequence[Sequence[frozenset[str]]], chosen: Sequence[int], number: int
) -> list[frozenset[str]]:
    """What the other rewrites' phrases say."""
    said = []
    for other, rank in enumerate(chosen):
        if other != number:
            said.append(contents[other][rank])
    return said


def _content(rewrite: AlignedRewrite, phrase: Phrase) -> frozenset[str]:
    """The words by which a person tells a phrase from others: those that differ between rewrites, and prepositions
    such as "since"; all of them where there are none."""
    bare = rewrite.words.bare
    telling = []
    for place in phrase.places:
        is_core = rewrite.is_core[place] and rewrite.is_content[place]
        if is_core or bare[place] in MEANINGFUL_PREPOSITIONS:
            telling.append(bare[place])
    return frozenset(telling or [bare[place] for place in phrase.places])


def _with_articles(
    rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]
) -> list[Phrase]:
    """Where some phrases begin with an article, bare nouns get theirs, too: "the lead vocal", "the band"."""
    pairs = list(zip(rewrites, phrases, strict=True))
    if not any(_has_article(rewrite, phrase) for rewrite, phrase in pairs):
        return list(phrases)
    return [_with_article(rewrite, phrase) for rewrite, phrase in pairs]


def _with_article(rewrite: AlignedRewrite, phrase: Phrase) -> Phrase:
    kinds = rewrite.words.kinds
    start = phrase.start
    if kinds[start] is not Kind.WORD or phrase.article or not start:
        return phrase
    if kinds[start - 1] is Kind.ARTICLE:
        (_, end), *others = phrase.spans
        return Phrase(((start - 1, end), *others))
    return Phrase(phrase.spans, article=follows_which(rewrite, start))


def _has_article(rewrite: AlignedRewrite, phrase: Phrase) -> bool:
    return phrase.article or rewrite.words.kinds[phrase.start] is Kind.ARTICLE


# Labels, categories and headers as they are shown: short, distinct, in good English.

LONGEST_LABEL = 40  # characters
LONGEST_HEADER = 12
_NO_HEADER = "Which one"
_BRACKETS = re.compile(r"\s*[(\[][^)\]]*[)\]]")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")
_LOWER_WORD = re.compile(r"\b[a-z]{3,}\b")
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_ORDINAL_FIGURE = re.compile(r"\b(\d+)(?:st|nd|rd|th)?\b")
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
# Kinds of works: options that end in one of them are versions of one thing.
_WORKS = (
    "film movie book novel musical song album series show game play opera remake cartoon comic manga anime sequel"
    " soundtrack single cover ballet poem novella adaptation miniseries sitcom drama documentary franchise version"
)
_A_YEAR_ONE = re.compile(r"the (\d{4}) one")
_KIND_IN_TITLE = re.compile(r"\((\d{4}) ([a-z][a-z ]*)\)$")
# Words that a noun must follow: "the current", "the first federal".
_MODIFIERS = frozenset(
    "current present former modern ancient new newer newest old older oldest original latest early earlier late later"
    " federal national international northern southern eastern western".split()
)
_PLACES = ("location", "place", "country", "region", "area", "city", "type of location")
_CATEGORY_OF_KIND = {
    "year": "year",
    "years": "time period",
    "date": "date",
    "country": "country",
    "region": "place",
}


def clean(text: str) -> str:
    """One line without control characters, outer quotation marks and final marks."""
    line = " ".join(_FORBIDDEN.sub(" ", text).split())
    return line.strip(' ,;:?!"“”')


def shorten(label: str, longest: int = LONGEST_LABEL) -> str:
    """A label of at most `longest` characters: without brackets, else cut between words.

    >>> shorten("the original soundtrack (released by a small label)", 30)
    'the original soundtrack'
    >>> shorten("the city near the mouth of the Cape Fear River", 40)
    'the city near the mouth…'
    """
    label = clean(label)
    if len(label) <= longest:
        return label
    bare = _BRACKETS.sub("", label).strip()
    if bare and len(bare) <= longest:
        return bare
    kept = label[: longest - 1]
    if not label[longest - 1].isspace():
        kept = kept.rpartition(" ")[0] or kept
    words = kept.split()
    while len(words) > 1 and _must_go(words[-1]):
        words.pop()
    return " ".join(words).rstrip(" ,;:(") + "…"


def _must_go(word: str) -> bool:
    """Whether a cut text must not end in this word: a function word, or a name that may go on."""
    kind = kind_of(word)
    return kind in FUNCTION_KINDS or kind is Kind.NAME


def with_capitals(label: str, evidence: str) -> str:
    """A label of a question in lower case, with the capitals that its words always have in the evidence.

    >>> with_capitals("in lumsey for the film", "At the film fair in Lumsey, a film was shown.")
    'in Lumsey for the film'
    """

    def written(word: re.Match[str]) -> str:
        capital = word.group().capitalize()
        inside = re.search(rf"(?<=[\w,;:)] ){re.escape(capital)}\b", evidence)
        in_lower_case = re.search(rf"\b{re.escape(word.group())}\b", evidence)
        return capital if inside and not in_lower_case else word.group()

    return _LOWER_WORD.sub(written, label)


def name_kind(label: str, title: str) -> str:
    """A label that only says the year of a work, with the kind of work that the title of its passage names.

    >>> name_kind("the 1984 one", "Dune (1984 film)"), name_kind("the 1984 one", "Dune (novel)")
    ('the 1984 film', 'the 1984 one')
    """
    year = _A_YEAR_ONE.fullmatch(label)
    kind = _KIND_IN_TITLE.search(title)
    if year is None or kind is None or year[1] != kind[1]:
        return label
    return f"the {kind[1]} {kind[2]}"


def complete(label: str) -> str:
    """A label that ends in an adjective behind its article, with a noun.

    >>> complete("the first federal"), complete("the actor"), complete("the White House")
    ('the first federal one', 'the actor', 'the White House')
    """
    words = label.split()
    is_open = len(words) > 1 and words[0].lower() == "the"
    if is_open and words[-1] in _MODIFIERS:
        return f"{label} one"
    return label


def key(label: str) -> str:
    """Equal for labels that a person cannot tell apart.

    >>> key("The United States"), key("the 2002 film.")
    ('united states', '2002 film')
    """
    words = split_words(label).bare
    kept = [word for word in words if kind_of(word) is not Kind.ARTICLE]
    return " ".join(kept or words)


def order_key(label: str) -> tuple[float, float, float] | None:
    """For labels that have a place in time or in a series: years, dates, ordinals, numbers; None for others.

    >>> order_key("from 2001 to 2004") < order_key("2003"), order_key("the second one"), order_key("Rome")
    (True, (2.0, 0.0, 0.0), None)
    """
    date = parse_date(label)
    if date is not None and date.year is not None:
        return (float(date.year), float(date.month or 0), float(date.day or 0))
    year = _YEAR.search(label)
    if year:
        return (float(year.group()), 0.0, 0.0)
    for word in split_words(label).bare:
        if word in _ORDINALS:
            return (_ORDINALS.index(word) + 1.0, 0.0, 0.0)
        figure = _ORDINAL_FIGURE.fullmatch(word)
        if figure:
            return (float(figure[1]), 0.0, 0.0)
    return None


def surest_lead(lead: Lead, labels: Sequence[str]) -> Lead:
    """The lead for people: where the labels' form says what they are, that; otherwise as it was chosen.

    >>> surest_lead(Lead("one"), ["1961", "2021"]).text, surest_lead(Lead("one"), ["the film", "the musical"]).text
    ('In which year', 'Which version')
    """
    kinds = {option_kind(label) for label in labels}
    category = _category_of(kinds) if lead.category == "one" else ""
    if category:
        return Lead(category, "in" if category in ("year", "country") else "")
    if lead.category in _PLACES and any(map(_is_circumstance, labels)):
        return Lead("one")
    heads = {" ".join(split_words(label).bare[-1:]) for label in labels}
    if lead.category in ("one", *heads) and heads <= set(_WORKS.split()):
        return Lead("version")
    return lead


def _category_of(kinds: set[str]) -> str:
    """The category of labels of these kinds; nothing where they leave a doubt."""
    if len(kinds) == 1:
        return _CATEGORY_OF_KIND.get(next(iter(kinds)), "")
    if kinds <= {"year", "date"}:
        return "date"
    return "time period" if kinds <= {"year", "date", "years"} else ""


def _is_circumstance(label: str) -> bool:
    """Whether a label is no place: "for her sea trials"."""
    words = split_words(label)
    is_phrase = words.kinds[:1] == (Kind.PREPOSITION,)
    return is_phrase and not any(word[:1].isupper() for word in label.split()[1:])


def without_category(labels: Sequence[str], category: str) -> list[str] | None:
    """The labels without the category's noun, where all that is left says something and differs; None where a noun
    that repeats cannot be taken away.

    >>> without_category(["season 2", "season 3"], "season"), without_category(["the men's team", "the B team"], "team")
    (['2', '3'], ["the men's", 'the B'])
    >>> without_category(["the city", "a country"], "city") is None
    True
    """
    noun = category.rsplit(maxsplit=1)[-1] if category else ""
    if not noun or category == "one":
        return list(labels)
    word = re.compile(rf"\b{re.escape(noun)}s?\b", re.IGNORECASE)
    if not any(word.search(label) for label in labels):
        return list(labels)
    at_an_end = re.compile(
        rf"^(?:the |an? )?{re.escape(noun)}\s+|\s+{re.escape(noun)}$", re.IGNORECASE
    )
    shorter = [at_an_end.sub("", label).strip() for label in labels]
    keys = {key(label) for label in shorter}
    says_something = all(has_content(label) for label in shorter)
    is_repeated = any(word.search(label) for label in shorter)
    if is_repeated or not says_something or len(keys) < len(labels):
        return None
    return shorter


def has_content(label: str) -> bool:
    """Whether a label has more than function words."""
    words = split_words(label)
    return any(kind not in FUNCTION_KINDS for kind in words.kinds)


def header_of(category: str) -> str:
    """At most 12 characters for a tab or a chip.

    >>> [header_of(category) for category in ("year", "one", "type of location", "country of registration")]
    ['Year', 'Which one', 'Location', 'Registration']
    """
    for text in (category, category.rsplit(maxsplit=1)[-1] if category.split() else ""):
        if text and text != "one" and len(text) <= LONGEST_HEADER:
            return text[0].upper() + text[1:]
    return _NO_HEADER


# Phrases for people: whole names and noun phrases, with the articles and prepositions that belong to
# them.

# Kept where every option has it: "by area, or by population".
_SHARED = frozenset("by for with to under".split())
_NUMBERS = (Kind.YEAR, Kind.DATE, Kind.NUMBER, Kind.ORDINAL)
_IN_NAMES = (Kind.NAME, Kind.NUMBER)


def suits_people(rewrite: AlignedRewrite, phrase: Phrase) -> bool:
    """Whether a phrase fits a label and could stand alone: no clause that begins with a wh-word, and no words joined
    that have lost the preposition between them, numbers aside."""
    if len(phrase_text(rewrite, phrase)) > LONGEST_LABEL:
        return False
    kinds = rewrite.words.kinds
    if kinds[phrase.start] is Kind.WH and len(phrase.places) > 1:
        return False
    if len(phrase.spans) == 1:
        return True
    start, _ = phrase.spans[-1]
    if kinds[start - 1] in (Kind.PREPOSITION, Kind.ARTICLE):
        return kinds[start] in (Kind.YEAR, Kind.DATE)
    return not (kinds[start - 1] is Kind.NAME and kinds[start] in _IN_NAMES)


def polish(rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]) -> list[str]:
    """The labels of phrases, with what belongs to them where a label stays short enough."""
    shared_noun = noun_behind(rewrites, phrases)
    together = _shared_preposition(rewrites, phrases)
    longer = []
    for rewrite, phrase in zip(rewrites, phrases, strict=True):
        whole = _with_whole_names(rewrite, phrase)
        if not shared_noun:
            whole = _with_noun(rewrite, whole)
        whole = _with_opening(rewrite, whole, together)
        longer.append(_if_short(rewrite, whole, phrase))
    longer = _with_prepositions(rewrites, longer)
    return _as_labels(rewrites, longer)


def _if_short(rewrite: AlignedRewrite, longer: Phrase, phrase: Phrase) -> Phrase:
    return longer if len(phrase_text(rewrite, longer)) <= LONGEST_LABEL else phrase


def _with_prepositions(
    rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]
) -> list[Phrase]:
    """Where some begin with a preposition, the others get theirs, too: "in London, or at the Majestic Theatre"."""
    pairs = list(zip(rewrites, phrases, strict=True))
    kinds = [rewrite.words.kinds[phrase.start] for rewrite, phrase in pairs]
    if Kind.PREPOSITION not in kinds:
        return list(phrases)
    completed = []
    for (rewrite, phrase), kind in zip(pairs, kinds, strict=True):
        before = phrase.start - 1
        words = rewrite.words
        has_one = before >= 0 and words.kinds[before] is Kind.PREPOSITION
        if has_one and kind is not Kind.PREPOSITION and words.bare[before] != "of":
            longer = _resized(phrase, before, phrase.end)
            completed.append(_if_short(rewrite, longer, phrase))
        else:
            completed.append(phrase)
    return completed


def _as_labels(
    rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]
) -> list[str]:
    """The texts; a year with an article, among options that are no years, becomes "the 1943 one"."""
    labels = []
    are_numbers = []
    for rewrite, phrase in zip(rewrites, phrases, strict=True):
        text = phrase_text(rewrite, phrase)
        if rewrite.words.kinds[phrase.start] is Kind.ARTICLE:
            text = text[0].lower() + text[1:]
        labels.append(text)
        are_numbers.append(_is_number(rewrite, phrase))
    if all(are_numbers):
        return labels
    for number, (rewrite, phrase) in enumerate(zip(rewrites, phrases, strict=True)):
        start = phrase.start
        kinds = rewrite.words.kinds
        with_article = start > 0 and kinds[start - 1] is Kind.ARTICLE
        if are_numbers[number] and kinds[start] is Kind.YEAR and with_article:
            labels[number] = f"the {labels[number]} one"
    return labels


def _is_number(rewrite: AlignedRewrite, phrase: Phrase) -> bool:
    return len(phrase.places) == 1 and rewrite.words.kinds[phrase.start] in _NUMBERS


def noun_behind(rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]) -> str:
    """The noun that stands behind every phrase: "the British | version"; nothing where they differ."""
    nouns = set()
    for rewrite, phrase in zip(rewrites, phrases, strict=True):
        nouns.add(_head_behind(rewrite, phrase.end))
    return nouns.pop() if len(nouns) == 1 else ""


def _head_behind(rewrite: AlignedRewrite, place: int) -> str:
    """The last noun of those right behind a phrase: "men's | world record"."""
    words = rewrite.words
    head = ""
    while place < len(words) and words.kinds[place] is Kind.WORD:
        head = category_noun(words.bare[place])
        place += 1
        if head:
            break
    return head


def _with_whole_names(rewrite: AlignedRewrite, phrase: Phrase) -> Phrase:
    kinds = rewrite.words.kinds
    start, end = phrase.start, phrase.end
    if kinds[start] in _IN_NAMES:
        while start > 0 and kinds[start - 1] is Kind.NAME:
            start -= 1
    if kinds[end - 1] is Kind.NAME:
        while end < len(kinds) and kinds[end] in _IN_NAMES:
            end += 1
    return _resized(phrase, start, end)


def _with_noun(rewrite: AlignedRewrite, phrase: Phrase) -> Phrase:
    """A noun right behind, which completes what begins with an adjective or a year: "the 1976 | film"."""
    end = phrase.end
    is_noun = end < len(rewrite.words) and category_noun(rewrite.words.bare[end])
    ends_in_noun = category_noun(rewrite.words.bare[end - 1])
    return _resized(phrase, phrase.start, end + bool(is_noun and not ends_in_noun))


def _with_opening(rewrite: AlignedRewrite, phrase: Phrase, together: bool) -> Phrase:
    """With the article before it, and the preposition before that where it means something."""
    words = rewrite.words
    start = phrase.start
    is_number = _is_number(rewrite, phrase)
    article = start > 0 and words.kinds[start - 1] is Kind.ARTICLE
    if article and not is_number and not phrase.article:
        start -= 1
    before = words.bare[start - 1] if start > 0 else ""
    if before in MEANINGFUL_PREPOSITIONS or (together and not is_number):
        start -= 1
    return _resized(phrase, start, phrase.end)


def _shared_preposition(
    rewrites: Sequence[AlignedRewrite], phrases: Sequence[Phrase]
) -> bool:
    """Whether all phrases, with their articles, follow one preposition of those that are kept then."""
    found = set()
    for rewrite, phrase in zip(rewrites, phrases, strict=True):
        place = phrase.start - 1
        if place >= 0 and rewrite.words.kinds[place] is Kind.ARTICLE:
            place -= 1
        found.add(rewrite.words.bare[place] if place >= 0 else "")
    return len(found) == 1 and found <= _SHARED


def _resized(phrase: Phrase, start: int, end: int) -> Phrase:
    first = (start, phrase.spans[0][1])
    spans = (first, *phrase.spans[1:])
    last = (spans[-1][0], end)
    return Phrase((*spans[:-1], last), phrase.article and start == phrase.start)
