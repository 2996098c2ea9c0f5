"""The Penn Treebank tokenizer of Stanford CoreNLP 3.4.1: its rules, and the tokens that they make."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

from whichsense.text.words import ARTICLES, normalize

# What the Stanford PTB tokenizer 3.4.1 takes for one token: a table of rules, longest match first.
#
# Each rule is a shape, sometimes with what must follow it. The rule whose shape and follower together
# reach farthest wins, and of equals the one that stands first. Letters and digits are Unicode's where
# the original says so and plain ASCII where it does not: that is why "Thorn/Toruń" breaks before its
# last letter.

# Numbers that are not digits (², ½, Ⅳ …) count as \w in Python, but are no letters.
_NOT_LETTERS = (
    "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070\u2074-\u2079\u2080-\u2089\u2150-\u2182\u2185-\u218b\u2460-\u249b\u24ea-\u24ff"
    "\u2776-\u2793\u3007\u3021-\u3029\u3038-\u303a\u3192-\u3195\u3220-\u3229\u3248-\u325f\u3280-\u3289\u32b1-\u32bf"
)
# Signs that belong to a word: the soft hyphen, and accents and vowel signs of several scripts.
_MARKS = (
    "\u00ad\u02c2-\u02c5\u02d2-\u02df\u02e5-\u02ff\u0300-\u036f\u0370-\u037d\u0384\u0385\u03f6\u0483-\u0487"
    "\u055a-\u055f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0615-\u061a\u064b-\u065e\u0670\u06d6-\u06ef"
    "\u06fa-\u06ff\u070f\u0711\u0730-\u074f\u07a6-\u07b1\u07fa\u0900-\u0903\u093c\u093e-\u094e\u0951-\u0955"
    "\u0962\u0963\u0981-\u0983\u09bc-\u09c4\u09c7\u09c8\u09cb-\u09cd\u09d7\u09e2\u09e3\u0a01-\u0a03\u0a3c"
    "\u0a3e-\u0a4f\u0a81-\u0a83\u0abc-\u0acf\u0b82\u0bbe-\u0bc2\u0bc6-\u0bc8\u0bca-\u0bcd\u0c01-\u0c03\u0c3e-\u0c56"
    "\u0d3e-\u0d44\u0d46-\u0d48\u0e30-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd"
)
_LETTER = rf"[^\W\d_{_NOT_LETTERS}]"
_IN_WORD = rf"(?:{_LETTER}|[{_MARKS}]|&[aeiouAEIOU](?:acute|grave|uml);)"
_SPACE = "[ \t\u00a0\u2000-\u200a\u3000]"
_GAP = "[ \t\u00a0\u2000-\u200a\u3000\r\n\u2028\u2029\u000b\u000c\u0085]"
_APOSTROPHE = "(?:['\u0092\u2019]|&apos;)"
_ANY_APOSTROPHE = "(?:['\u0092\u2019`\u0091\u2018\u201b]|&apos;)"
_CLAUSE_MARK = "[,;:\u3001]"

_RUN = rf"{_IN_WORD}(?:{_IN_WORD}|\d)*"
_WORD = rf"{_RUN}(?:[.!?]{_RUN})*"
_CLITIC = rf"{_APOSTROPHE}(?:[msd]|re|ve|ll)"  # 's 'm 'd 're 've 'll
_NOT_CLITIC = rf"n{_ANY_APOSTROPHE}t"
_BEFORE_NOT = "[A-Za-z\u00ad]*[A-MO-Za-mo-z]\u00ad*"
_NUMBER = "[-+]?(?:\\d*(?:[.:,\u00ad\u066b\u066c]\\d+)+|\\d+)"
_PREFIXED = (
    rf"(?:[dDoOlL]{_ANY_APOSTROPHE}(?:{_LETTER}|\d))?(?:{_LETTER}|\d)+"  # d'Artagnan, O'Brien
)
_COMPOUND = rf"{_PREFIXED}(?:[-_\u058a\u2010\u2011]{_PREFIXED})*"
_ACRONYM = r"(?:(?:Canada|Sino|Korean|EU|Japan|non)-U\.S|U\.S\.-(?:U\.S\.S\.R|U\.K)|[A-Za-z](?:\.[A-Za-z])+)"
_HYPHENATED = rf"[A-Za-z0-9][A-Za-z0-9.,\u00ad]*(?:-(?:{_ACRONYM}\.|[A-Za-z0-9\u00ad]+))+"
_SLASHED = r"[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}(?:\\?/[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}){1,2}"
_JOINED = r"[A-Z]+(?:(?:&amp;|[+&])[A-Z]+)+"  # R&B, case-sensitive: "r&b" is three tokens
_VOWEL_BREAK = rf"{_LETTER}+[aeiouyAEIOUY]{_ANY_APOSTROPHE}[aeiouA-Z]{_LETTER}*"  # Ra'ad, Hawai'i
_FRENCH = rf"[A-HJ-XZn]{_ANY_APOSTROPHE}{_LETTER}{_LETTER}+"
_QUOTE = (
    rf"(?:[`\u2018-\u201f\u0082\u0084\u0091-\u0094\u2039\u203a\u00ab\u00bb]{{1,2}}|{_APOSTROPHE})"
)
_TAG_NAME = r"[A-Za-z][A-Za-z0-9_:.\-]*"
_TAG = (
    rf"<(?:[!?][A-Za-z\-][^>\r\n]*|/{_TAG_NAME}|{_TAG_NAME}(?: +{_TAG_NAME}"
    rf"(?: *= *(?:'[^']*'|\"[^\"]*\"|{_TAG_NAME}))?)* */?) *>"
)
_FILE = (
    rf"(?:{_IN_WORD}|\d)+(?:\.(?:{_IN_WORD}|\d)+)*\.(?:bat|bmp|class|cgi|cpp|c|dll|docx?|exe|gif|gz|html?|h|jar"
    r"|java|jpe?g|mov|mp3|pdf|php|pl|png|ppt|ps|py|sql|tar|txt|wav|xml|x|zip)"
)
_SIGN = (
    "[+%&~^|\\\\\u00a6\u00a7\u00a8\u00a9\u00ac\u00ae\u00af\u00b0-\u00ba\u00d7\u00f7\u0387\u05be\u05c0\u05c3\u05c6"
    "\u05f3\u05f4\u0600-\u0603\u0606-\u060a\u060c\u0614\u061b\u061e\u066a\u066d\u0703-\u070d\u07f6-\u07f8\u0964"
    "\u0965\u0e4f\u1fbd\u2016\u2017\u2020-\u2023\u2030-\u2038\u203b\u203e-\u2042\u2044\u207a-\u207f\u208a-\u208e"
    "\u2100-\u214f\u2190-\u2bff\u3012\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)

# Abbreviations keep their dot. A capital inside (?-i:…) is asked for: "Miss." but not "miss."
_SENTENCE_ENDING = (
    r"(?:(?:Ed|Ph)\.D|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thu|Thurs|Fri"
    r"|Ala|Ariz|(?-i:A)z|(?-i:A)rk|Calif|Colo|Conn|Ct|Dak|(?-i:D)el|Fla|Ga|(?-i:I)ll|Ind|Kans?|Ky|(?-i:L)a"
    r"|(?-i:M)ass|Md|Mich|Minn|(?-i:M)iss|Mo|Mont|Neb|Nev|Okla|(?-i:O)re|(?-i:P)a|Penn|Tenn|(?-i:T)ex|Va|Vt"
    r"|(?-i:W)ash|Wisc?|Wyo|Inc|Cos?|Corp|Pp?t[ye]s?|Ltd|Plc|Bancorp|Bhd|Assn|Univ|Intl|Sys|tel|est|ext|sq|ft"
    r"|Jr|Sr|Bros|Esq|etc|al|seq|Bldg)\."
)
_TITLE = (
    r"(?:Mrs?|Ms|(?-i:M)iss|Drs?|Profs?|Sens?|Reps?|Attys?|Lt|Col|Gen|Messrs|Govs?|Adm|Rev|Maj|Sgt|Cpl|Pvt|Mt|Capt"
    r"|Ste?|Ave|Pres|Lieut|Hon|Brig|Co?mdr|Pfc|Spc|Supts?|Det|vs|Alex|Wm|Jos|Cie|cf|TREAS|Ph|Invt|Elec|Natl|M[ft]g"
    r"|Dept|Blvd|Rd|Adj|Adv|Asst|Assoc|Ens|Insp|Mlle|Mme|Msgr|Sfc)"
)
# After an acronym, these (capitalised) words begin a new sentence.
_OPENERS = (
    "(?:(?-i:A)(?:bout|ccording|dditionally|fter|n|s|t|)|(?-i:B)ut|(?-i:D)(?:id|uring)|(?-i:E)arlier"
    r"|(?-i:H)(?:er|ere|e|owever|ow)|(?-i:I)[fnt]|(?-i:L)ast|(?-i:M)(?:any|ore|r\.|s\.)|(?-i:N)ow"
    "|(?-i:O)(?:nce|ne|ther|ur)|(?-i:S)(?:he|ince|ome|o|uch)|(?-i:T)(?:hat|heir|hen|here|hese|hey|he|his)"
    "|(?-i:W)(?:e|hen|hile|hat|ho|hy)|(?-i:Y)(?:et|ou))"
)
_PLACE = '[^ \t\n\f\r"<>|(){}]'


class Rule(NamedTuple):
    """A token's shape (group 1) with its follower, what the token becomes, and how much is read once more."""

    pattern: re.Pattern[str]
    make: Callable[[str], str] | None = None
    again: int = 0


def _as_is(shape: str, follower: str = "") -> Rule:
    return _made(None, shape, follower)


def _made(
    make: Callable[[str], str] | None, shape: str, follower: str = "", again: int = 0
) -> Rule:
    return Rule(re.compile(f"((?i:{shape}))(?i:{follower})"), make, again)


def _exact(shape: str, follower: str = "", make: Callable[[str], str] | None = None) -> Rule:
    return Rule(re.compile(f"({shape})(?:{follower})"), make)


_CURLY = str.maketrans(
    dict.fromkeys("\u0091\u2018\u201b\u2039", "`")
    | dict.fromkeys("\u0092\u2019\u203a", "'")
    | dict.fromkeys("\u0093\u201c\u00ab", "``")
    | dict.fromkeys("\u0094\u201d\u00bb", "''")
)
_MONEY = str.maketrans(
    {"\u00a2": "cents", "\u00a3": "#"} | dict.fromkeys("\u0080\u00a4\u20a0\u20ac", "$")
)
_FRACTIONS = dict(zip("¼½¾⅓⅔", ("1/4", "1/2", "3/4", "1/3", "2/3"), strict=True))
_TREEBANK_BRACKETS = ("-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-")
_BRACKETS = str.maketrans(dict(zip("()[]{}", _TREEBANK_BRACKETS, strict=True)))
_ROUND = str.maketrans({"(": "-LRB-", ")": "-RRB-", " ": "\u00a0"})


def _plain_quotes(token: str) -> str:
    return token.replace("&apos;", "'").translate(_CURLY)


def _no_soft_hyphens(token: str) -> str:
    return token.replace("\u00ad", "") or "-"


def _plain_ampersand(token: str) -> str:
    return re.sub("(?i)&amp;", "&", token)


def _dashes(token: str) -> str:
    return "--" if 3 <= len(token) <= 4 else token


def _spaceless(token: str) -> str:
    return re.sub("[ \r\n]", "\u00a0", token)


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules, in the order that decides between equally long matches. Compiled on first use."""
    return (*_words(), *_numbers(), *_abbreviations(), *_marks(), *_compounds())


def _words() -> list[Rule]:
    a = _APOSTROPHE
    return [
        _as_is(r"c\+\+|[cf]#"),
        _made(None, "cannot|'twas", again=3),
        _made(None, "'tis|gonna|gotta|lemme|gimme|wanna", again=2),
        _exact(_TAG, make=_spaceless),
        _made(lambda _: "--", "&(?:MD|mdash|ndash);|[\u0096\u0097\u2013\u2014\u2015]"),
        _made(_plain_ampersand, "&amp;"),
        _as_is("&(?:HT|TL|UR|LR|QC|QL|QR|odq|cdq|#[0-9]+);"),
        _made(_no_soft_hyphens, _WORD, _CLITIC),
        _made(_no_soft_hyphens, _BEFORE_NOT, _NOT_CLITIC),
        _made(_no_soft_hyphens, _WORD),
        _as_is(
            f"{a}n{a}?|[ldj]{a}|Dunkin{a}|somethin{a}|ol{a}|{a}em|{a}[2-9]0s|{a}till?|{a}cause|cont'd\\.?"
        ),
        _as_is(f"o{_ANY_APOSTROPHE}o|nor'easter|c'mon|e'er|s'mores|ev'ry|li'l|nat'l"),
        _exact(_FRENCH),
        _exact(_VOWEL_BREAK),
        _as_is(f"y{a}", _LETTER),
        _exact(rf"(?i:ftp|https?)://{_PLACE}+[^ \t\n\f\r\"<>|.!?(){{}},\-]"),
        *(
            _exact(
                rf"(?:(?i:www)\.(?:[^ \t\n\f\r\"<>|.!?(){{}},{slash}]+\.)+[a-zA-Z]{{2,4}}"
                r"|(?:[^ \t\n\f\r\"`'<>|.!?(){},-_$]+\.)+(?i:com|net|org|edu))"
                r"(?:/[^ \t\n\f\r\"<>|()]+[^ \t\n\f\r\"<>|.!?(){},\-])?"
            )
            for slash in (
                "",
                "/",
            )  # what stands after a slash may be host or path, whichever reaches farther
        ),
        _as_is(
            '(?:&lt;|<)?[a-zA-Z0-9][^ \t\n\f\r"<>|()\u00a0{}]*@(?:[^ \t\n\f\r"<>|().\u00a0{}]+\\.)*'
            '[^ \t\n\f\r"<>|().\u00a0{}]+(?:&gt;|>)?'
        ),
        _as_is(f"@[a-zA-Z_][a-zA-Z_0-9]*|#{_IN_WORD}+"),
        _made(_plain_quotes, _CLITIC, "[^A-Za-z]"),
        _made(_plain_quotes, _NOT_CLITIC, "[^A-Za-z]"),
    ]


def _numbers() -> list[Rule]:
    return [
        _as_is(r"\d{1,2}[-/]\d{1,2}[-/]\d{2,4}"),
        _made(_no_soft_hyphens, _NUMBER),
        _as_is(
            "[\u207a\u207b\u208a\u208b]?(?:[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+|[\u2080-\u2089]+)"
        ),
        _made(_spaceless, "(?:\\d{1,4}[- \u00a0])?\\d{1,4}(?:\\\\?/|\u2044)\\d{1,4}"),
        _made(lambda sign: _FRACTIONS.get(sign, sign), "[\u00bc\u00bd\u00be\u2153-\u215e]"),
        _made(
            _plain_ampersand,
            r"-(?:RRB|LRB|RCB|LCB|RSB|LSB)-|C\.D\.s|pro-|anti-|S&(?:amp;)?P-500|S&(?:amp;)?Ls"
            rf"|Cap{_APOSTROPHE}n|c{_APOSTROPHE}est",
        ),
        _as_is(_SLASHED),
        _exact(r"[A-Z]*\$|#"),
        _made(
            lambda sign: sign.translate(_MONEY),
            "[\u00a2-\u00a5\u0080\u20a0\u20ac\u060b\u0e3f\u20a4\uffe0\uffe1\uffe5\uffe6]",
        ),
    ]


def _abbreviations() -> list[Rule]:
    capital = rf"{_GAP}(?:{_GAP}|(?-i:[A-Z\u00c0-\u00d6\u00d8-\u00de])|{_TAG})"
    sentence = rf"{_GAP}+{_OPENERS}{_GAP}"
    short = rf"(?:{_ACRONYM}|{_TITLE}|[A-Za-z])"
    return [
        _made(None, rf"{_ACRONYM}\.", sentence, again=1),
        _made(lambda letter: letter[:-1], r"[A-Za-z]\.", sentence, again=1),
        _as_is(r"(?:ca|figs?|prop|nos?|arts?|bldg|pp|op)\.", rf"{_GAP}?\d"),
        _as_is(r"(?:pt[ey]|co)\.", f"{_SPACE}(?:ltd|lim)"),
        _made(None, _SENTENCE_ENDING, capital, again=1),
        _as_is(_SENTENCE_ENDING, r"[\s\S]{2}"),
        _made(None, _SENTENCE_ENDING, again=1),
        _as_is(rf"{short}\."),
        _as_is(short, _SPACE),
        _as_is(_ACRONYM, _GAP),
        _as_is(f"{_APOSTROPHE}[0-9][0-9]", _GAP),
        _as_is(_FILE, rf"{_GAP}|[.?!,]"),
        _made(_no_soft_hyphens, rf"{_WORD}\.", _CLAUSE_MARK),
        _made(
            lambda number: number.translate(_ROUND),
            "(?:\\([0-9]{2,3}\\)[ \u00a0]?|(?:\\+\\+?)?(?:[0-9]{2,4}[- \u00a0])?[0-9]{2,4}[- \u00a0])"
            "[0-9]{3,4}[- \u00a0]?[0-9]{3,5}|(?:(?:\\+\\+?)?[0-9]{2,4}\\.)?[0-9]{2,4}\\.[0-9]{3,4}\\.[0-9]{3,5}",
        ),
    ]


def _marks() -> list[Rule]:
    face = r"[\^x=~<>']"
    return [
        _made(lambda _: "``", '"|&quot;', "[A-Za-z0-9$]"),
        _made(lambda _: "''", '"|&quot;'),
        _made(lambda _: "<", "<|&lt;"),
        _made(lambda _: ">", ">|&gt;"),
        _exact(
            r"[<>]?[:;=][-o*']?[()DPdpO\\{@|\[\]]",
            "[^A-Za-z0-9]",
            lambda smile: smile.translate(_ROUND),
        ),
        _exact(
            rf"[-\^x=~<>']_[-\^x=~<>']|\([-\^x=~<>'][_.]?[-\^x=~<>']\)|\({face}-(?:{face}|`)\)",
            make=lambda smile: smile.translate(_ROUND),
        ),
        _made(lambda bracket: bracket.translate(_BRACKETS), r"[{}\[\]()]"),
        _made(_dashes, "-+"),
        _made(lambda _: "...", "\\.{3,5}|(?:\\.[ \u00a0]){2,4}\\.|[\u0085\u2026]"),
        _as_is(r"@+|#+|_+|\*+|(?:\\\*){1,3}"),
        _as_is(
            rf"{_CLAUSE_MARK}|[?!]+|[.\u00a1\u00bf\u037e\u0589\u061f\u06d4\u0700-\u0702\u07fa\u3002]|=|/"
        ),
    ]


def _compounds() -> list[Rule]:
    rules_: list[Rule] = []
    for shape, make in ((_HYPHENATED, _no_soft_hyphens), (_COMPOUND, None)):
        rules_ += [_made(make, rf"{shape}\.", _CLAUSE_MARK), _made(make, shape)]
    return [
        *rules_,
        _exact(rf"{_JOINED}\.", _CLAUSE_MARK, _plain_ampersand),
        _exact(_JOINED, make=_plain_ampersand),
        _exact("'", "[A-Za-z][^ \t\n\r\u00a0]", lambda _: "`"),
        _made(_plain_quotes, f"{_CLITIC}|{_NOT_CLITIC}"),
        _made(_plain_quotes, f"''|{_QUOTE}"),
        _as_is(f"<<|>>|{_SIGN}"),
    ]


# Tokens as the Stanford PTB tokenizer 3.4.1 makes them, without Java: the first step of AmbigQA's
# question metrics.

# What the captioning toolkit drops after tokenizing. It lower-cases first, so that a bracket's "-lrb-" stays.
_DROPPED = frozenset("'' ' `` ` -LRB- -RRB- -LCB- -RCB- . ? ! , : - -- ... ;".split())

# What needs no rule, as nothing that follows can make a longer token of it: the bulk of every question.
_PLAIN = re.compile(
    r"""[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*(?=[ "()]|[,:;]\ |\?*\Z)  # a word, whole or hyphenated
    |[0-9][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*(?=\ [^0-9]|[")]|\?*\Z)         # a number, unless another one may join it
    |[A-Za-z]{2,}(?='(?:s|m|d|re|ve|ll)(?:\ |\?*\Z))                    # the word before 's
    |'(?:s|m|d|re|ve|ll)(?=\ |\?*\Z)
    |[A-Za-z]*[A-MO-Za-mo-z](?=n't(?:\ |\?*\Z))                         # the word before n't
    |n't(?=\ |\?*\Z)
    |,(?=\ )|:(?=\ )|\?(?=\ |\Z)""",
    re.VERBOSE,
)
_SPLIT = frozenset(("cannot", "gonna", "gotta", "lemme", "gimme", "wanna"))
_SKIPPED = re.compile(
    "[ \t\u00a0\u2000-\u200b\u3000\u200e\u200f\ufeff\0\r\n\u2028\u2029\u000b\u000c]+|&nbsp;"
)
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_SIMPLE = re.compile(r"[A-Za-z0-9 ]*\??")


def lexemes(text: str) -> list[str]:
    """Return all tokens in lower case, punctuation included.

    >>> lexemes("Don't they (the U.S.) cost $5?")
    ['do', "n't", 'they', '-lrb-', 'the', 'u.s.', '-rrb-', 'cost', '$', '5', '?']
    >>> lexemes("I cannot say: rock'n'roll/pop")
    ['i', 'can', 'not', 'say', ':', 'rock', "'n'", 'roll/pop']
    """
    # The original knows 16-bit characters only, and drops the others.
    text = _ASTRAL.sub("\u200b", text)
    tokens: list[str] = []
    position = 0
    while position < len(text):
        if text[position] == " ":
            position += 1
            continue
        plain = _PLAIN.match(text, position)
        if plain and plain[0].lower() not in _SPLIT:
            tokens.append(plain[0].lower())
            position = plain.end()
        elif gap := _SKIPPED.match(text, position):
            position = gap.end()
        else:
            position = _add_longest(text, position, tokens)
    return tokens


def _add_longest(text: str, position: int, tokens: list[str]) -> int:
    """Add the token of the rule that matches farthest; returns the position after it."""
    best_rule = best_match = None
    reach = position
    for rule in rules():
        match = rule.pattern.match(text, position)
        if match and match.end() > reach:
            best_rule, best_match = rule, match
            reach = match.end()
    if best_rule is None or best_match is None:
        # A character that the original cannot tokenize is dropped.
        return position + 1
    end = best_match.end(1)
    token = best_match[1]
    if best_rule.again > 1:  # the rest of the word is a token of its own
        token = text[position : end - best_rule.again]
    if best_rule.make:
        token = best_rule.make(token)
    tokens.append(token.lower())
    return end - best_rule.again


def tokenize(text: str) -> list[str]:
    """Return the tokens that the captioning toolkit keeps.

    >>> tokenize("Who's the actor, then?")
    ['who', "'s", 'the', 'actor', 'then']
    """
    return [token for token in lexemes(text) if token not in _DROPPED]


@lru_cache(maxsize=2**16)
def tokenize_question(question: str) -> tuple[str, ...]:
    """Return a question's words as AmbigQA compares them: tokenized, then normalized, so that articles vanish.

    >>> tokenize_question("Who made the play 'The Crucible' (1996)?")
    ('who', 'made', 'play', 'crucible', 'lrb', '1996', 'rrb')
    """
    # Most questions are words without punctuation: no rule is needed.
    if _SIMPLE.fullmatch(question):
        words = question.lower().rstrip("?").split()
        if _SPLIT.isdisjoint(words):
            return tuple([word for word in words if word not in ARTICLES])
    tokens = tokenize(question.replace("\n", " "))
    return tuple(normalize(" ".join(tokens)).split())
