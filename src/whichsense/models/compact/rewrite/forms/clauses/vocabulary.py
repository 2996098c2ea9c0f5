"""The word lists of the forms that read clauses: a closed class each, in one place."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARTICLES = _words("a an the")
DETERMINERS = ARTICLES | _words(
    "this that these those its his her their our my your each every any no some all both another"
)
PRONOUNS = _words(
    "it he she they we you i him them this that these those both either one ones others another"
)
WH_WORDS = _words("who whom whose which what when where why how that")
CONJUNCTIONS = _words(
    "and or but while whereas though although nor unless if because so"
)
PREPOSITIONS = _words(
    "in on at for from by with without during under over above below before after until since within between up "
    "to into onto of as through throughout outside inside near per about against among behind beyond along across "
    "aboard upon towards toward than via like around beside despite except"
)
# Prepositions whose phrase may say under which condition, where or on which occasion something holds.
CONDITION_PREPOSITIONS = _words(
    "in on at for with without during under above below before after within between up from to over outside inside "
    "aboard beyond by through"
)
AUXILIARIES = _words(
    "is are was were be been being am has have had having do does did will would can could may might must shall "
    "should cannot"
)
# Present forms of verbs with which documents give a value; both numbers.
VALUE_VERBS = _words(
    "cost costs weigh weighs pay pays get gets receive receives last lasts take takes give gives need needs require "
    "requires earn earns have has had is are was were be hold holds run runs open opens close closes begin begins "
    "start starts apply applies allow allows carry carries contain contains measure measures use uses draw draws go "
    "goes fall falls sound sounds stand stands serve serves end ends stay stays keep keeps expire expires rise rises "
    "remain remains attract attracts reach reaches offer offers accept accepts accrue accrues carry borrow borrows "
    "include includes qualify qualifies deliver delivers become becomes live lives charge charges repay repays work "
    "works yield yields cover covers meet meets form forms mean means make makes shut shuts bear bears leave leaves "
    "seat seats"
)
# Past forms that do not end in -ed, and their base forms.
BASE_OF_PAST = {
    "began": "begin",
    "took": "take",
    "became": "become",
    "won": "win",
    "went": "go",
    "made": "make",
    "gave": "give",
    "got": "get",
    "held": "hold",
    "wrote": "write",
    "sang": "sing",
    "ran": "run",
    "led": "lead",
    "came": "come",
    "left": "leave",
    "lost": "lose",
    "fell": "fall",
    "rose": "rise",
    "stood": "stand",
    "sold": "sell",
    "built": "build",
    "found": "find",
    "kept": "keep",
    "met": "meet",
    "paid": "pay",
    "put": "put",
    "set": "set",
    "sent": "send",
    "spoke": "speak",
    "spent": "spend",
    "told": "tell",
    "beat": "beat",
    "cost": "cost",
    "drew": "draw",
    "sank": "sink",
    "saw": "see",
    "brought": "bring",
    "bought": "buy",
    "taught": "teach",
    "fought": "fight",
    "grew": "grow",
    "knew": "know",
    "flew": "fly",
    "broke": "break",
    "chose": "choose",
    "drove": "drive",
    "rode": "ride",
    "swam": "swim",
    "wore": "wear",
    "lay": "lie",
    "sat": "sit",
    "shot": "shoot",
    "struck": "strike",
}
# Participles that do not end in -ed.
PARTICIPLES = _words(
    "begun taken become won gone made given got held written sung run led come left lost fallen risen sold built "
    "found kept met paid put set sent spoken spent told beaten cost drawn sunk seen brought bought taught fought "
    "grown known flown broken chosen driven ridden worn shot struck hit cut split shown laid born thrown hung broadcast"
)
MONTHS = _words(
    "January February March April May June July August September October November December"
)
PEOPLE = (  # nouns that mean the same in a question and in a document
    _words("employee employees staff worker workers personnel"),
    _words("customer customers client clients subscriber subscribers user users"),
    _words("pupil pupils student students learner learners"),
)
# Heads of labels on which a condition stands: on the Basic plan.
ON_NOUNS = _words(
    "plan tariff rate scheme contract site floor platform line route ticket days weekdays mondays tuesdays wednesdays "
    "thursdays fridays saturdays sundays"
)
# Nouns for a part or an edition of a thing: the written part of the test.
PART_NOUNS = _words(
    "part half volume season series version edition module exterior interior stage phase section wing floor "
    "chapter leg tower roof nave facade crew episode instalment draft branch generation"
)
WORK_NOUNS = _words("work works construction production filming shooting")
ORDINALS = _words(
    "first second third fourth fifth sixth seventh eighth ninth tenth last original final present modern new old "
    "current former earlier later latest"
)
POSSESSIVES = _words("its his her their our my your")
ADVERBS = _words("indoors outdoors online overseas abroad")
# Words that end no phrase: they point to something else.
VAGUE = _words(
    "that this these those it then there only also order together again alone later earlier away ago long "
    "most least effect two three four five six seven eight nine ten eleven twelve fifteen twenty"
)
# With these a year is where a term or a thing begins or ends.
BOUNDARY_VERBS = _words(
    "left retired retires resigned resigns joined died began ended became took replaced succeeded followed stepped "
    "quit returned"
)
# Words that describe nothing by themselves and no kind of thing.
NO_MODIFIERS = _words(
    "only also other same such more most own many several two three four five six seven eight nine ten few much very "
    "just alone about nearly almost some least then still even now again not never always once later"
)
# Nouns that need no plural for several people, or have one of their own.
GROUPS = _words(
    "staff personnel children men women people alumni faculty crew police youth media"
)
OPPOSITES = {"with": "without", "without": "with", "above": "below", "below": "above"}
# Verbs that name a receiver between themselves and the value: "costs members 12 lev".
GIVING_VERBS = _words("cost costs pay pays give gives allow allows charge charges")
# Adjectives that stand before a name: "a small Quillon parcel". Others are known by their endings.
ADJECTIVES = _words(
    "small large medium big long short new old full half early late high low male female young private single double "
    "free paid modern ancient present wet dry heavy light hot cold open closed rear front upper lower main"
)
ADJECTIVE_ENDINGS = (
    "al",
    "ic",
    "ive",
    "ed",
    "ous",
    "ary",
    "ory",
    "able",
    "ible",
    "less",
    "ful",
    "ern",
    "ly",
    "bound",
    "-time",
    "ian",
    "ish",
)
# What may stand around dates in a phrase of time.
TIME_WORDS = PREPOSITIONS | _words(
    "and or the early late mid end beginning start middle spring summer autumn winter about around only"
)
BE = _words("is are was were be been being am")
# Past forms in -ed of verbs that dates stand with, and their base forms.
BASE_OF_EVENT = {
    "opened": "open",
    "reopened": "reopen",
    "started": "start",
    "ended": "end",
    "closed": "close",
    "launched": "launch",
    "premiered": "premiere",
    "aired": "air",
    "appeared": "appear",
    "debuted": "debut",
    "finished": "finish",
    "landed": "land",
    "arrived": "arrive",
    "retired": "retire",
    "died": "die",
    "resumed": "resume",
}
EVENT_BASES = frozenset(BASE_OF_EVENT.values()) | _words("happen form come")
EVENT_BASES |= {"come out", "take place"}
PAST_OF_PARTICIPLE = {
    "written": "wrote",
    "sung": "sang",
    "drawn": "drew",
    "begun": "began",
    "given": "gave",
    "chosen": "chose",
    "taken": "took",
}
# Past forms of verbs of making: each is a role that "Who made X?" may mean.
ROLE_VERBS = _words(
    "made created wrote composed directed produced designed illustrated hosted edited translated sang recorded "
    "performed narrated choreographed built founded financed drew painted invented developed presented adapted "
    "arranged voiced modelled conducted published announced discovered isolated named"
)
# What one of several makers of a work made.
ROLE_NOUNS = _words(
    "words lyrics music score tune libretto screenplay script story text pictures drawings illustrations"
)
GENERAL_ROLES = _words("leader head boss chief ruler voice star presenter")
PARTICLES = _words("out off up down over")
# Participles that say nothing without what follows them.
LIGHT_PARTICIPLES = _words(
    "made held carried taken given put set got had called kept brought led run tried used moved left shown come"
)
FULL_BASES = _words("begin fall sink die")
# Nouns that make one verb with a preposition before them: "go on sale".
SET_NOUNS = _words("sale air service use force effect print production operation")
# Words by which a text refers back to the thing that it is about.
THINGS = _words(
    "film movie show series play musical album song single book novel game building bridge tunnel dam station stadium "
    "tower church cathedral company firm club party agreement treaty act law pact union league line ship car magazine "
    "newspaper paper museum school university city team band park programme opera ballet poem statue monument palace "
    "castle hotel theatre airport canal railway road wall house temple hospital bank shop store"
)
# Endings and words of nouns that say what somebody is, and nouns that only say whose.
PERSON_ENDINGS = ("er", "or", "ist", "ian", "man", "woman", "eer")
PERSONS = _words(
    "architect coach priest king queen poet firm group company band monk nurse chef pilot student bishop clerk judge "
    "duo brothers agency studio"
)
RELATIONS = _words(
    "brother sister father mother daughter owner winner member founder partner successor predecessor player leader "
    "teacher former other"
)
UNITS = _words(
    "day week month year hour minute night mile kilometre metre page copy pound kilo litre person head visit"
)
# Past forms of BASE_OF_EVENT that have no passive.
INTRANSITIVE = _words(
    "opened reopened started ended premiered appeared debuted landed arrived retired died"
)
TIME_PREPOSITIONS = _words("in on from since until before after between during")
# Labels that number the parts of a document.
HEADINGS = _words(
    "item motion section article clause annex schedule chapter note table figure step"
)
ADVERBIALS = _words(
    "otherwise afterwards thereafter then formerly normally usually elsewhere once twice whole rest further"
)
# What holds for all tells nothing apart.
UNIVERSAL = _words("any all every each both")
TITLES = _words("Mr Mrs Ms Dr Prof Prof. Sir Dame Lord Lady")
