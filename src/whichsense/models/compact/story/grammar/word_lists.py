"""The English words that long answers know: a closed class each, in one place."""

from __future__ import annotations

from whichsense.text.function_words import WH_WORDS


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

# Verbs.
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
