"""English words of replies: positions, orders, refusals, requests, and what is only courtesy around a choice."""

from __future__ import annotations

from whichsense.text.words import CLOSED_CLASS_WORDS, ORDINAL_WORDS, TENS, UNITS, WH_WORDS, word_set

CONTRASTS = word_set(
    "before after since until under over above below during within inside outside first"
)
"""Function words that tell labels apart: "before 2024", "after five years"."""
NEGATIONS = word_set("not no except without neither nor excluding excludes but never dont")
AUXILIARIES = word_set(
    "is are was were am be do does did can could has have had will would should shall may might must isnt arent didnt"
)
POINTERS = word_set(
    "option options choice choices number nr no item answer answers entry alternative alternatives"
)
"""Words that make a position of a number: "option 2"."""
ORDINALS = dict(zip(ORDINAL_WORDS[:10], range(1, 11), strict=True))
CARDINALS = dict(zip(UNITS[1:11], range(1, 11), strict=True))
LAST_WORDS = word_set("last final bottom latter")
FIRST_WORDS = word_set("top former")
MIDDLE_WORDS = word_set("middle central")

# Superlatives and comparatives → the way to look: +1 for the greatest, -1 for the least.
TIME_ORDER = {
    **dict.fromkeys(
        "new newest newer latest recent later youngest younger current currently now modern".split(),
        1,
    ),
    **dict.fromkeys(
        "old oldest older earliest earlier original originally beginning start initial".split(), -1
    ),
}
SIZE_ORDER = {
    **dict.fromkeys(
        "big biggest bigger large largest larger greatest greater highest higher most longest longer heaviest heavier "
        "furthest farthest maximum max tallest taller".split(),
        1,
    ),
    **dict.fromkeys(
        "small smallest smaller least lowest lower fewest fewer shortest shorter lightest lighter "
        "minimum min nearest".split(),
        -1,
    ),
}
DECADES = {f"{word[:-1]}ies": 20 + 10 * place for place, word in enumerate(TENS)}

# Words around a choice that say nothing of it.
FILLERS = CLOSED_CLASS_WORDS - NEGATIONS | word_set(
    """please pls plz thanks thank thx cheers kindly sorry hi hello hey ok okay oh ah um uh hm well yeah yes
    yep sure right fine great meant mean means meaning want wanted wants need needed like think thought guess suppose
    say said talking talk
    thinking probably maybe perhaps possibly definitely certainly actually really simply rather instead
    let lets go going take pick choose chose select give show see get tell know answer interested looking look
    im id ill ive its thats theres youre we work based use using
    thing things stuff kind sort type case version ones guy part"""
)

ALL_WORDS = word_set("all everything everyone every each both any either lot")
COURTESIES = word_set("i please pls thanks just really well it sorry me the")
INDIFFERENT = word_set(
    "know care mind matter matters sure idea ideas preference clue opinion decide choose fussed bothered"
)
"""With a negation: no preference."""
DENIALS = word_set("dont doesnt isnt cant didnt not no without never unable")
SKIP_PHRASES = frozenset(
    (
        "skip", "skip it", "skip this", "pass", "next", "whatever", "whichever", "anything", "idk", "dunno",
        "you choose", "you decide", "you pick", "up to you", "your choice", "surprise me", "never mind", "nevermind",
        "forget it", "cancel", "unsure", "undecided", "move on", "go on", "continue", "go ahead",
    )
)  # fmt: skip
NONE_WORDS = word_set("none neither nothing nope nah other others another different else wrong")
NONE_PHRASES = frozenset(("no", "not these", "not those", "not that", "not any", "no not these"))

META_WORDS = word_set(
    """difference differences differ different distinguish compare comparison between mean means meaning meant explain
    explanation describe description detail details more about tell say options option choices choice them these those
    understand clarify elaborate same similar apart versus vs"""
)
"""Words of a question about the options."""
REQUESTS = word_set("tell explain describe compare clarify elaborate search find")
GREETINGS = word_set(
    "and but so or well ok okay oh actually no yes sorry wait hmm hm um please also then now instead"
)
"""Words before a question that say nothing of it."""
MEASURES = word_set(
    "many much long far old often big large deep high tall heavy fast wide soon late early hot cold"
)

CONTROL_WORDS = (
    frozenset(ORDINALS)
    | frozenset(CARDINALS)
    | LAST_WORDS
    | FIRST_WORDS
    | MIDDLE_WORDS
    | frozenset(TIME_ORDER)
    | frozenset(SIZE_ORDER)
    | frozenset(DECADES)
    | ALL_WORDS
    | NONE_WORDS
    | word_set("skip option number difference between except before after since please meant")
    | WH_WORDS
)
"""Words that are looked for when one is misspelt."""
