"""Sentences as NLTK's English Punkt finds them in lower-case text: the input of ASQA's official ROUGE-L.

Punkt (Kiss and Strunk, 2006) uses the case of the next word. In lower-cased text a dot ends a sentence unless it
belongs to a known abbreviation, or to a number or an initial before a lower-case word. The word lists are those of the
trained English model, distributed with NLTK (Apache License 2.0).
"""

from __future__ import annotations

import re
from itertools import pairwise

_ABBREVIATIONS = frozenset(
    "a.a a.c a.d a.g a.h a.m a.m.e a.s a.t adm ala ariz aug ave b.f b.v bros c c.i.t c.o.m.b c.v calif chg cie co col "
    "colo conn corp cos ct d d.c d.h d.w dec dr e e.f e.h e.l e.m f f.g f.j feb fla fri ft g g.d g.f g.k ga gen h h.c "
    "h.f h.m i.m.s ill inc j.b j.c j.j j.k j.p j.r jan jr k kan ky l l.a l.f l.p lt ltd m m.b.a m.d.c m.j maj messrs "
    "mg mich minn mr mrs ms n n.c n.d n.h n.j n.m n.v n.y nev nov oct ok okla ore p p.a.m p.m pa ph.d prof r r.a r.h "
    "r.i r.j r.k r.t rep reps s s.a s.a.y s.c s.g s.p.a s.s sen sep sept sr st sw t t.j tenn tues u.k u.n u.s u.s.a "
    "u.s.s.r v va vs vt w w.c w.r w.va w.w wash wed wis yr".split()
)
# Words that belong together across a dot, after an initial. (The rule for numbers covers those after a number.)
_COLLOCATIONS = frozenset(
    (
        "b edelman",
        "b levine",
        "b smith",
        "b stewart",
        "b wigton",
        "i magnin",
        "i toussie",
        "j aron",
        "j fialka",
        "j walter",
        "o ludcke",
    )
)
_LOWER_CASE_STARTERS = frozenset(("administrators", "b-week", "r-revised", "z-holiday"))
_PUNCTUATION = frozenset(";:,.!?")

_NOT_IN_WORD = r"""[?!)";}\]*:@'({\[]"""
_RUN = r"-{2,}|\.{2,}|(?:\.\s){2,}\."
_TOKEN = re.compile(
    rf"""{_RUN}
    |(?=[^("`{{\[:;&\#*@)}}\]\-,])\S+?(?=\s|\Z|{_NOT_IN_WORD}|{_RUN}|,(?:\Z|\s|{_NOT_IN_WORD}|{_RUN}))
    |\S""",
    re.VERBOSE,
)
_END = re.compile(rf"[.?!](?=({_NOT_IN_WORD}|\s+(\S+)))")
_NUMBER = re.compile(r"-?[.,]?\d[\d,.\-]*\.?\Z")
_INITIAL = re.compile(r"[^\W\d]\.\Z")
_CLOSING = re.compile(r"""["')\]}]+?(?:\s+|(?=--)|$)""", re.MULTILINE)


def sentences(text: str) -> list[str]:
    """The sentences of a lower-cased text.

    >>> sentences('it came out in the u.s. in 1977. then "jaws 2" followed! (so did others.) dr. no was first.')
    ['it came out in the u.s. in 1977. then "jaws 2" followed!', '(so did others.)', 'dr. no was first.']
    """
    return [text[start:end] for start, end in spans(text)]


def spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence of a lower-cased text.

    >>> spans("it ended. it began.")
    [(0, 9), (10, 19)]
    """
    return _realign_closings(text, _raw_spans(text))


def _raw_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence, before closing quotes are moved."""
    raw = []
    start = 0
    for word_start, mark in _candidate_ends(text):
        context = text[word_start : mark.end()] + mark[1]
        if _has_sentence_end(context):
            raw.append((start, mark.end()))
            start = mark.start(2) if mark[2] else mark.end()
    raw.append((start, len(text.rstrip())))
    return raw


def _candidate_ends(text: str) -> list[tuple[int, re.Match[str]]]:
    """Marks that may end a sentence, each with the start of the word before. Of marks in a row the last counts."""
    candidates: list[tuple[int, re.Match[str]]] = []
    previous_word = previous_mark = 0
    for mark in _END.finditer(text):
        gap = _last_space(text[previous_mark : mark.start()])
        word = previous_mark + gap + 1 if gap else previous_word
        if candidates and previous_mark > word:
            candidates.pop()
        candidates.append((word, mark))
        previous_word, previous_mark = word, mark.start()
    return candidates


def _last_space(text: str) -> int:
    """The position of the last white space; 0 where there is none."""
    for position in range(len(text) - 1, -1, -1):
        if text[position].isspace():
            return position
    return 0


def _has_sentence_end(context: str) -> bool:
    """Whether a sentence ends between two tokens of the context."""
    tokens = _TOKEN.findall(context)
    return any(_ends_sentence(token, after) for token, after in pairwise(tokens))


def _ends_sentence(token: str, following: str) -> bool:
    if token in (".", "?", "!"):
        return True
    if not token.endswith(".") or token.endswith(".."):
        return False
    word = token[:-1]
    # Of a hyphenated word, the last part counts.
    if word in _ABBREVIATIONS or word.rpartition("-")[2] in _ABBREVIATIONS:
        return False
    is_initial = _INITIAL.match(token)
    if is_initial and f"{word} {following}" in _COLLOCATIONS:
        return False
    if is_initial or _NUMBER.match(token):
        is_lower = following[0].islower()
        goes_on = is_lower and following not in _LOWER_CASE_STARTERS
        return not (following in _PUNCTUATION or goes_on)
    return True


def _realign_closings(text: str, raw: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Move closing quotes and brackets back to the sentence that they close."""
    aligned = []
    moved = 0  # characters that the sentence before has taken
    for number, (start, stop) in enumerate(raw):
        begin = start + moved
        end = stop
        moved = 0
        if number + 1 < len(raw):
            next_start, next_end = raw[number + 1]
            closing = _CLOSING.match(text[next_start:next_end])
            if closing:
                end = next_start + len(closing[0].rstrip())
                moved = len(closing[0])
        if text[begin:end]:
            aligned.append((begin, end))
    return aligned
