"""Small closed sets of words by which options are typed: countries, regions, languages, ages, genders."""

from __future__ import annotations

import re

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
