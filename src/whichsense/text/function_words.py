"""Function words, one named set for each use.

The sets differ on purpose: models were trained and results were measured with each of them as it is. They share the
groups below; what a set adds to its groups is written out.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Groups that the sets are made of.
_ARTICLES = _words("a an the")
_PREPOSITIONS = _words("of in on at to for from by with")
_CORE = _ARTICLES | _PREPOSITIONS | _words("and or")
_COPULAS = _words("is are was were")
_BE = _COPULAS | _words("be been being")
_AUXILIARIES = _words("do does did has have had")
_DEMONSTRATIVES = _words("this that these those")
_SUBJECTS = _words("i you he she it we they")
_POSSESSIVES = _words("my your his her its our their")
_OBJECTS = _words("me him them")

WH_WORDS = _words("who whom whose which what when where why how")

# Lucene's stop words, which are not indexed.
UNINDEXED_WORDS = (
    _CORE - {"from"}
    | _words("is are was be it they their this that these")
    | _words("as but if into no not such then there will")
)

# Dropped from questions only: a search for "The Who" still finds it.
QUESTION_WORDS = (
    UNINDEXED_WORDS
    | WH_WORDS
    | _BE
    | _AUXILIARIES
    | (_SUBJECTS - {"it", "they"})
    | _words("its our your his her him them")
    | _words("many much s t from about after over than out up all can also one")
    | _words("would could should")
)

# Words that a rewrite may insert whatever the evidence is, in lower case.
SMALL_WORDS = (
    _CORE
    | _BE
    | _AUXILIARIES
    | _DEMONSTRATIVES
    | (WH_WORDS - {"why"})
    | _words("it its he she they his her their")
    | _words("but without as into onto over under after before during since until")
    | _words("between against about around within will would can could many much not")
    | _words("no only also than then s there some any if more most later including per")
)

# Words for a kind of thing that state no fact: a rewrite may insert them, too.
NEUTRAL_WORDS = _words(
    """film movie series show season episode song album book novel game version edition character actor actress single
    original originally first second third last final current currently former name named person people individual team
    play played plays playing sang sings sung sing write wrote written record recorded direct directed voice role lead
    make made release released date year time number total amount part end start begin began beginning according terms
    country city state world man men woman women group all each ever other another up out through time place event take
    took official officially full based air aired called used come came become became get tv musical main regular
    general generally overall specific specifically primarily typically known considered type
    kind form one two"""
)

# Words that do not distinguish two rewrites.
GENERIC_WORDS = SMALL_WORDS | _words(
    "country city state person people individual man men woman women team group name named year date time"
)

# Words that do not count where a mention's surroundings are compared with the question.
SURROUNDING_WORDS = _CORE | _COPULAS | _AUXILIARIES

# Words that begin a phrase: a rewrite must not end with one.
PHRASE_OPENERS = _CORE | _words("as during between which whose")

# Words that do not count where a sentence of a summary is compared with a passage.
SUMMARY_STOP_WORDS = _CORE | _COPULAS | _words("be been it its as that this")

# Words that an abbreviation leaves out: the United States *of* America.
NAME_LINKS = (
    _ARTICLES | _words("of and for in on at") | _words("de la le du von van der den")
)

# NLTK's stop words without wh-words: changing a wh-word is an edit that matters.
EDIT_STOP_WORDS = (
    _CORE
    | _BE
    | _AUXILIARIES
    | _DEMONSTRATIVES
    | _SUBJECTS
    | _POSSESSIVES
    | _OBJECTS
    | _words("ours yours hers theirs am having doing but if because as until while")
    | _words("about against between into through during before after above below up")
    | _words("down out off over under again further then once here there all any both")
    | _words("each few more most other some such no nor not only own same so than too")
    | _words("very s t can will just don should now d ll m o re ve y")
)

# Words of the closed classes (determiners, pronouns, prepositions, conjunctions, auxiliaries, some adverbs): those that
# token deletion leaves in a question where no tagger is installed.
CLOSED_CLASS_WORDS = (
    _CORE
    | _BE
    | _AUXILIARIES
    | _DEMONSTRATIVES
    | _SUBJECTS
    | _POSSESSIVES
    | _OBJECTS
    | WH_WORDS
    | _words("each every either neither some any no all both half such another")
    | _words("mine myself yours yourself himself hers herself itself us ours theirs")
    | _words("themselves one ones whoever whatever somebody someone something anybody")
    | _words("anyone anything nobody nothing everybody everyone everything")
    | _words("about against between into through during before after above below up")
    | _words("down out off over under within without along across behind beyond near")
    | _words("among around since until till upon toward towards per via")
    | _words("but nor so yet if because although though while whereas unless than as")
    | _words("whether am done doing having can could may might must shall should will")
    | _words("would ought 's 're 've 'd 'll n't not")
    | _words("there here then thus also only very too just even still again once ever")
    | _words("never always often")
)
