"""Sentences as NLTK's English Punkt finds them in lower-case text: what the official ROUGE-L of ASQA is fed with.

Punkt (Kiss and Strunk, 2006) weighs the case of the next word. Lower-cased text leaves little of that: a dot ends a
sentence unless it belongs to a known abbreviation, or to a number or an initial before a lower-case word. The word
lists are the trained English model's, distributed with NLTK (Apache License 2.0).
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
# Pairs that hold together across a dot, after an initial. (Those after a number hold by the rule for numbers.)
_PAIRS = frozenset(
    "b edelman|b levine|b smith|b stewart|b wigton|i magnin|i toussie|j aron|j fialka|j walter|o ludcke".split(
        "|"
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
    """The sentences of a text that was lower-cased before.

    >>> sentences('it came out in the u.s. in 1977. then "jaws 2" followed! (so did others.) dr. no was first.')
    ['it came out in the u.s. in 1977. then "jaws 2" followed!', '(so did others.)', 'dr. no was first.']
    """
    spans = _realigned(text, _spans(text))
    return [text[start:end] for start, end in spans]


def _spans(text: str) -> list[tuple[int, int]]:
    spans, begin = [], 0
    for word_start, end in _candidates(text):
        if _breaks(text[word_start : end.end()] + end[1]):
            spans.append((begin, end.end()))
            begin = end.start(2) if end[2] else end.end()
    spans.append((begin, len(text.rstrip())))
    return spans


def _candidates(text: str) -> list[tuple[int, re.Match[str]]]:
    """Where a sentence may end, with the start of the word before. Of marks in a row, only the last counts."""
    found: list[tuple[int, re.Match[str]]] = []
    start = stop = 0
    for end in _END.finditer(text):
        before = text[stop : end.start()]
        gap = max(
            (i for i in range(len(before) - 1, -1, -1) if before[i].isspace()),
            default=0,
        )
        word = stop + gap + 1 if gap else start
        if found and stop > word:
            found.pop()
        found.append((word, end))
        start, stop = word, end.start()
    return found


def _breaks(context: str) -> bool:
    tokens = _TOKEN.findall(context)
    return any(_ends(token, following) for token, following in pairwise(tokens))


def _ends(token: str, following: str) -> bool:
    if token in (".", "?", "!"):
        return True
    if not token.endswith(".") or token.endswith(".."):
        return False
    word = token[:-1]
    if word in _ABBREVIATIONS or word.rpartition("-")[2] in _ABBREVIATIONS:
        return False
    initial = _INITIAL.match(token)
    if initial and f"{word} {following}" in _PAIRS:
        return False
    if initial or _NUMBER.match(token):
        in_sentence = following[0].islower() and following not in _LOWER_CASE_STARTERS
        return not (following in _PUNCTUATION or in_sentence)
    return True


def _realigned(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Closing quotes and brackets go back to the sentence that they close."""
    aligned, moved = [], 0
    for (start, stop), following in zip(spans, [*spans[1:], None], strict=True):
        begin, end = start + moved, stop
        moved = 0
        if following and (closing := _CLOSING.match(text[following[0] : following[1]])):
            end = following[0] + len(closing[0].rstrip())
            moved = len(closing[0])
        if text[begin:end]:
            aligned.append((begin, end))
    return aligned
