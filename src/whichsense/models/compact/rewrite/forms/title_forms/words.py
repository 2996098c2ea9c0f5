"""The word lists of the forms that read titles: a closed class each, in one place."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Kinds of works and the preposition that says that something happens there.
_IN_WORKS = _words(
    """film movie novel book play musical opera ballet series serial miniseries sitcom soap drama show game manga comic
    anime cartoon poem story tale song novella episode franchise trilogy documentary painting sculpture programme
    program operetta oratorio"""
)
_ON_WORKS = _words("album single record podcast soundtrack ep")
PREPOSITION_OF_WORK = dict.fromkeys(_IN_WORKS, "in") | dict.fromkeys(_ON_WORKS, "on")

# Works without characters.
SONGS_AND_IMAGES = _words(
    "song single album record soundtrack ep painting sculpture poem"
)
# Nouns that take "of" before a name: the 2005 revival of Doctor Who.
VERSION_NOUNS = _words(
    """version recording edition revival arrangement production adaptation cover remake performance reboot
    translation staging"""
)
# Words of a question and of a title for the same kind of work.
_SAME_KINDS = (
    _words("film movie picture"),
    _words("novel book novella"),
    _words("series show sitcom serial drama programme program miniseries soap"),
    _words("song single recording track"),
    _words("play musical opera ballet operetta"),
)
# Numbered parts of a work: season 3.
PART_NOUNS = _words("season series volume part episode chapter book act")
# Bracketed words that name a field or a section and no kind of thing.
NO_KINDS = _words(
    """debut voice title history mythology television radio comics action limits character rules golf excess loans
    disambiguation legacy reception"""
)

PLAYING_VERBS = _words(
    "play plays played playing portray portrays portrayed voice voices voiced be"
)
# Verbs whose object may be a work.
MAKING_VERBS = _words(
    """write wrote writes direct directed directs produce produced produces compose composed sing sang sings record
    recorded make made makes create created publish published release released design designed paint painted narrate
    narrates narrated host hosts hosted presents presented edit edited choreograph choreographed perform performed
    developed develop won win wins based starred cover covered sculpted illustrated invented win
    watch see read film filmed"""
)
# Verbs whose subject, behind an auxiliary, is a work and not a character in it.
WORK_VERBS = _words(
    """come open opened begin start end air aired premiere premiered run cost gross make made take set released release
    filmed shot written published directed produced recorded composed based performed shown staged finish win close
    nominated adapted sung played called last appear debut created peak reach chart painted hang sell earn have
    contain feature"""
)
AUXILIARIES = _words(
    "is are was were am do does did has have had will would can could should may might must"
)
PREPOSITIONS = _words(
    """in on at of for from by with to into onto about after before during since until under over through between
    against as than like near within without"""
)
# Words that may follow a noun phrase; the phrase is complete before them.
PHRASE_ENDS = (
    AUXILIARIES
    | PREPOSITIONS
    | _words(
        """and or but that which who whom when where while if first last originally ever now currently today again
        still also then the a an his her its their not only really actually born based"""
    )
)
COPULAS = _words("is are was were")
POSSESSIVE_PRONOUNS = _words("my your his her its our their whose")
# Adjectives of order that stand before a name: the first Big Brother.
ORDER_WORDS = _words(
    """first second third fourth fifth sixth seventh eighth ninth tenth last original new old latest next final
    current present modern most best oldest youngest only former"""
)
INDEFINITE_WORDS = _words(
    "a an any every each many most other another some no which what"
)
NATIONAL_ADJECTIVES = _words(
    """American British English Scottish Welsh Irish French German Italian Spanish Portuguese Dutch Belgian Swiss
    Austrian Swedish Norwegian Danish Finnish Icelandic Polish Czech Hungarian Russian Soviet Ukrainian Greek Turkish
    Israeli Egyptian Indian Pakistani Chinese Japanese Korean Thai Filipino Indonesian Australian Canadian Mexican
    Brazilian Argentine Chilean Nigerian African European Asian Iranian Romanian Bulgarian Serbian Croatian"""
)
# The beginning of an event's name.
EVENT_NAMES = (
    r"(?:Battle|Siege|Treaty|Bombing|Bombardment|Sack|Congress|Peace|Assault|Coup|Fire|Massacre"
    r"|Revolt) (?:of|on)\b"
)
# First words of titles that name a section of a topic and no thing.
SECTION_WORDS = _words("early later other subsequent further more recent various")
# Nouns by their endings, which may follow a name: the Nautilus submarine. Verbs with such an ending are listed.
NOUN_ENDINGS = (
    "er",
    "or",
    "ist",
    "ship",
    "tion",
    "sion",
    "ment",
    "ness",
    "ity",
    "ine",
    "ism",
    "ics",
    "dom",
    "line",
)
VERBS_LIKE_NOUNS = _words(
    """enter discover conquer cover deliver offer suffer surrender determine define decline combine mention implement
    order recover consider answer alter differ remember transfer appear"""
)
# Kinds of documents: no part of a thing's name.
DOCUMENT_NOUNS = _words(
    """policy sheet list minutes manual notice handbook terms guide report circular agreement specification schedule
    regulations prospectus catalogue conditions tariff leaflet memo bulletin contract amendment fiche information
    declaration instructions brochure procedure summary requirements extract newsletter notes supplement
    decisions fees charges prices admission rates fares data warranty annex statement letter decision"""
)
# Words before a document's noun that belong to its kind: Staff Handbook.
DOCUMENT_ADJECTIVES = _words(
    """data price user product technical owner's annual service staff employee leave travel expenses training safety
    operating maintenance installation release"""
)
# Nouns that name other things than documents, too; they count in titles of several parts only.
LOOSE_DOCUMENT_NOUNS = _words(
    """list report agreement amendment contract declaration notes statement letter decision decisions admission data
    information procedure summary terms conditions charges record extract warranty rates order guide"""
)
# Documents about a product; the others are a firm's or an office's.
PRODUCT_DOCUMENTS = (
    "data sheet",
    "datasheet",
    "manual",
    "specification",
    "technical data",
    "user guide",
    "product",
    "release notes",
    "warranty",
)
# Documents that say what held on one day, which is over.
PAST_DOCUMENTS = _words("minutes report record decisions")
SEASONS = _words("spring summer autumn winter")
GROUP_NOUNS = _words(
    """staff employees workers customers members students pupils users visitors residents drivers managers programmes
    courses subscribers applicants candidates guests adults children passengers resellers couriers apprentices trainees
    lines"""
)


def is_same_kind(kind: str, other: str) -> bool:
    """Whether two nouns mean the same kind of work.

    >>> is_same_kind("film", "movie"), is_same_kind("film", "novel")
    (True, False)
    """
    if kind == other:
        return True
    return any({kind, other} <= group for group in _SAME_KINDS)
