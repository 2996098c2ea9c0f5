"""Passages as a reader may see them: no control characters, no markup, no stray marks."""

from __future__ import annotations

import re

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>|&[a-z]{2,8};")
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]"
)
_NOTE = re.compile(r"\[(?:\d{1,3}|[a-z]|citation needed|note \d+)\]")
_LOOSE_OWNER = re.compile(r" (['’]s|n['’]t)\b")
_BEFORE_MARK = re.compile(r"\s+([,;.])(?=\s|$)")


def clean(text: str) -> str:
    """A piece of a passage on one line, without tags, control characters and numbers of notes.

    >>> clean('He <b>won</b>\\x07 it[3] , in ""1989"" .')
    'He won it, in "1989".'
    """
    plain = _TAG.sub(" ", _CONTROL.sub("", text.replace("&amp;", "&")))
    plain = _NOTE.sub("", plain).replace('""', '"').replace("``", '"')
    plain = plain.replace("''", '"')
    plain = _LOOSE_OWNER.sub(r"\1", " ".join(plain.split()))
    return _BEFORE_MARK.sub(r"\1", plain)
