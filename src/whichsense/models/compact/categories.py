"""What options have in common, the words that ask for it ("As of which year"), and labels as they are shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whichsense.models.compact.phrases import (
    FUNCTION_KINDS,
    AlignedRewrite,
    Features,
    Kind,
    Phrase,
    Ranker,
    kind_of,
    phrase_text,
    split_words,
)
from whichsense.text.answers import parse_date

_COUNTRIES = frozenset(
    """afghanistan|albania|algeria|andorra|angola|argentina|armenia|australia|austria|azerbaijan|bahamas|bahrain|bangladesh|
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
""".replace("\n", "").split("|")
)

# Categories that fit many questions, and what may stand before "which" with them.
_COMMON = (
    "one|year|location|country|time period|time frame|place|region|date|person|team|period|area|type|origin|type of"
    " location|position|role|nationality|version|season|event|era|city|state|generation|age|name|month|language|movie"
    "|part|episode|series|sport|format|edition|gender|age group"
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
_NOUN_KINDS = (Kind.WORD, Kind.ING, Kind.ED)
_BY_KIND = {"year": "year", "years": "time period", "date": "date", "country": "country"}
# Options that end in these are versions of one work.
_WORKS = frozenset("film movie book novel musical album song series show play opera game".split())


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
    """Rewrites of a question, and the phrase that was chosen of each."""

    rewrites: Sequence[AlignedRewrite]
    phrases: Sequence[Phrase]

    @property
    def options(self) -> list[str]:
        texts = []
        for rewrite, phrase in zip(self.rewrites, self.phrases, strict=True):
            texts.append(phrase_text(rewrite, phrase))
        return texts

    def beside(self, offset: int, end: bool = False) -> list[str]:
        """Return the word so many places from each phrase's start, or from its end."""
        found = []
        for rewrite, phrase in zip(self.rewrites, self.phrases, strict=True):
            place = phrase[end] + offset
            inside = 0 <= place < len(rewrite.words)
            found.append(rewrite.words.bare[place] if inside else "")
        return found


def choose_lead(choice: Choice, ranker: Ranker) -> Lead:
    """Return the lead that fits the options best."""
    candidates = lead_candidates(choice)
    return max(candidates, key=lambda lead: ranker.score(candidates[lead]))


def lead_candidates(choice: Choice) -> dict[Lead, Features]:
    """Return every lead that may be meant, with its features: the lead, or where its noun is from, with each signal of
    the options."""
    signals = list(_signals(choice))
    sources: dict[Lead, list[str]] = {}
    for name in _COMMON.split("|"):
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
            for signal in signals:
                features[f"{name} & {signal}"] = 1.0
        candidates[lead] = features
    return candidates


def _signals(choice: Choice) -> Iterator[str]:
    """Yield the forms of the options and the words around them, each shared by all options or by some."""
    before = choice.beside(-1)
    two = [" ".join(pair).strip() for pair in zip(choice.beside(-2), before, strict=True)]
    rows = {
        "is": [option_kind(option) for option in choice.options],
        "before": before,
        "before two": two,
        "behind": choice.beside(0, end=True),
    }
    for name, tokens in rows.items():
        for token, count in Counter(tokens).items():
            how_many = "all" if count == len(tokens) else "some"
            yield f"{how_many} {name} {token}"


def _nouns(choice: Choice) -> Iterator[tuple[str, str]]:
    """Yield nouns that may be the category, each with where it is from."""
    ends = [" ".join(split_words(option).bare[-1:]) for option in choice.options]
    rows = {"before": choice.beside(-1), "behind": choice.beside(0, end=True), "end": ends}
    for source, tokens in rows.items():
        noun = tokens[0] if len(set(tokens)) == 1 else ""
        if noun and kind_of(noun) in _NOUN_KINDS:
            yield source, noun


def option_kind(option: str) -> str:
    """Return the form of an option.

    >>> [option_kind(text) for text in ("2017", "from 2001 to 2004", "Japan", "the film", "in Rome", "Old Dan")]
    ['year', 'years', 'country', 'noun', 'in', 'name']
    """
    words = split_words(option)
    kinds = [kind_of(words.word(place)) for place in range(len(words))]
    if not kinds:
        return "nothing"
    if _names_countries(option):
        return "country"
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


def _names_countries(text: str) -> bool:
    """Return whether a text names a country, or several."""
    for part in re.split(r" and | or ", text.lower()):
        if re.sub(r"^(?:in |the )+", "", part) not in _COUNTRIES:
            return False
    return True


def surest_lead(lead: Lead, labels: Sequence[str]) -> Lead:
    """Return the lead for people: by the labels' form where it leaves no doubt, else the one that was chosen.

    >>> surest_lead(Lead("one"), ["1961", "2021"]).text, surest_lead(Lead("one"), ["the film", "the musical"]).text
    ('In which year', 'Which version')
    """
    kinds = {option_kind(label) for label in labels}
    heads = {" ".join(split_words(label).bare[-1:]) for label in labels}
    if lead.category in ("one", *heads) and heads <= _WORKS:
        return Lead("version")
    if lead.category != "one":
        return lead
    if len(kinds) == 1:
        category = _BY_KIND.get(kinds.pop(), "one")
        return Lead(category, "in" if category in ("year", "country") else "")
    return Lead("date" if kinds == {"year", "date"} else "one")


# Labels and headers as they are shown: short, distinct, clean.

LONGEST_LABEL = 40  # characters
LONGEST_HEADER = 12
_BRACKETS = re.compile(r"\s*[(\[][^)\]]*[)\]]")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_ORDINAL_FIGURE = re.compile(r"\b(\d+)(?:st|nd|rd|th)?\b")
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()


def clean(text: str) -> str:
    """One line without control characters, outer quotation marks and final marks."""
    line = " ".join(_FORBIDDEN.sub(" ", text).split())
    return line.strip(' ,;:?!"“”')


def shorten(label: str, longest: int = LONGEST_LABEL) -> str:
    """Return a label of at most `longest` characters: without brackets, or what stands before its colon, else cut
    between words.

    >>> shorten("the original soundtrack (released by a small label)", 30), shorten("Leave Policy: Annual Leave", 20)
    ('the original soundtrack', 'Leave Policy')
    >>> shorten("the city near the mouth of the Cape Fear River", 40)
    'the city near the mouth…'
    """
    label = clean(label)
    if len(label) <= longest:
        return label
    for rest in (_BRACKETS.sub("", label), label.partition(": ")[0]):
        part = clean(rest)
        if 0 < len(part) <= longest:
            return part
    kept = label[: longest - 1]
    if not label[longest - 1].isspace():
        kept = kept.rpartition(" ")[0] or kept
    words = kept.split()
    return " ".join(words[: _whole_words(words)]).rstrip(" ,;:(") + "…"


def _whole_words(words: Sequence[str]) -> int:
    """Return how many words of a cut text are kept: none of a phrase whose name may go on, or of which only function
    words are left."""
    kinds = [kind_of(word) for word in words]
    before_name = len(kinds)
    while before_name > 1 and kinds[before_name - 1] is Kind.NAME:
        before_name -= 1
    end = len(kinds) if kinds[before_name - 1] not in FUNCTION_KINDS else before_name
    while end > 1 and kinds[end - 1] in FUNCTION_KINDS:
        end -= 1
    return end


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


def without_category(labels: Sequence[str], category: str) -> list[str] | None:
    """Return the labels without the category's noun, where all that is left says something and differs; None where a
    noun that repeats cannot be taken away.

    >>> without_category(["season 2", "season 3"], "season"), without_category(["the men's team", "the B team"], "team")
    (['2', '3'], ["the men's", 'the B'])
    >>> without_category(["the city", "a country"], "city") is None
    True
    """
    noun = category.rsplit(maxsplit=1)[-1] if category else ""
    word = re.compile(rf"\b{re.escape(noun)}s?\b", re.IGNORECASE)
    if not noun or category == "one" or not any(map(word.search, labels)):
        return list(labels)
    at_an_end = rf"(?i)^(?:the |an? )?{re.escape(noun)}\s+|\s+{re.escape(noun)}$"
    shorter = [re.sub(at_an_end, "", label).strip() for label in labels]
    is_distinct = len({key(label) for label in shorter}) == len(labels)
    if any(map(word.search, shorter)) or not all(map(has_content, shorter)) or not is_distinct:
        return None
    return shorter


def has_content(label: str) -> bool:
    """Return whether a label has more than function words."""
    words = split_words(label)
    return any(kind not in FUNCTION_KINDS for kind in words.kinds)


def header_of(category: str) -> str:
    """Return at most 12 characters for a tab or a chip.

    >>> [header_of(category) for category in ("year", "one", "type of location", "country of registration")]
    ['Year', 'Which one', 'Location', 'Registration']
    """
    for text in (category, category.rsplit(maxsplit=1)[-1] if category.split() else ""):
        if text and text != "one" and len(text) <= LONGEST_HEADER:
            return text[0].upper() + text[1:]
    return "Which one"
