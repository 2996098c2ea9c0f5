"""Features of a phrase, for the ranker that chooses what an option says."""

from __future__ import annotations

from whichsense.models.compact.clarification.alignment import (
    FUNCTION_KINDS,
    AlignedRewrite,
    Kind,
)
from whichsense.models.compact.clarification.phrases import Phrase

_NUMBERS = (Kind.YEAR, Kind.NUMBER, Kind.ORDINAL, Kind.DATE)
_VERBS = (Kind.ED, Kind.ING)
Features = dict[str, float]


def phrase_features(rewrite: AlignedRewrite, phrase: Phrase) -> Features:
    """What is inside, what is left out, and the words at both ends; features that are 0 are left out."""
    features = {
        **_counts(rewrite, phrase),
        **_edges(rewrite, phrase),
        **_joins(rewrite, phrase),
    }
    return {name: float(value) for name, value in features.items() if value}


def _counts(rewrite: AlignedRewrite, phrase: Phrase) -> Features:
    inside = set(phrase.places)
    core = {place for place, is_core in enumerate(rewrite.is_core) if is_core}
    left_out = core - inside
    new_core = {place for place in core if rewrite.new[place]}
    content = [place for place in inside if rewrite.is_content[place]]
    kinds = rewrite.words.kinds
    old = [place for place in content if not rewrite.new[place]]
    size = len(inside)
    said = " ".join(rewrite.words.bare[place] for place in phrase.places)
    repeats = sum(f" {said} " in other for other in rewrite.others)
    return {
        "in other rewrites": repeats / max(len(rewrite.others), 1),
        "in some other rewrite": repeats > 0,
        "core left out": min(len(left_out), 6),
        "core share": len(core & inside) / max(len(core), 1),
        "all core": not left_out,
        "new core left out": len(new_core - inside),
        "new core inside": len(new_core & inside),
        "some new core": bool(new_core & inside) or not new_core,
        "numbers left out": sum(kinds[place] in _NUMBERS for place in left_out),
        "names left out": sum(kinds[place] is Kind.NAME for place in left_out),
        "verbs left out": sum(kinds[place] in _VERBS for place in left_out),
        "old shared inside": sum(rewrite.varies[place] == 0 for place in old),
        "old varied inside": sum(rewrite.varies[place] > 0 for place in old),
        "new shared inside": sum(
            rewrite.new[place] and rewrite.varies[place] == 0 for place in content
        ),
        "function words": size - len(content),
        "size": min(size, 10),
        "one word": size == 1,
        "two words": size == 2,
        "over six words": size > 6,
        "content words": min(len(content), 6),
        "no content": not content,
        "has wh": any(kinds[place] is Kind.WH for place in inside),
        "has auxiliary": any(kinds[place] is Kind.AUXILIARY for place in inside),
    }


def _edges(rewrite: AlignedRewrite, phrase: Phrase) -> Features:
    start, end = phrase.start, phrase.end
    bare = rewrite.words.bare
    kinds = rewrite.words.kinds
    count = len(bare)
    first, before = _token(rewrite, start), _token(rewrite, start - 1)
    last, behind = _token(rewrite, end - 1), _token(rewrite, end)
    inner = [_token(rewrite, place) for place in phrase.places]
    second = inner[1] if len(inner) > 1 else "-"
    features: Features = {}
    for name, token, place in (
        ("first", first, start),
        ("before", before, start - 1),
        ("last", last, end - 1),
        ("behind", behind, end),
    ):
        features[f"{name} {token}"] = 1
        features[f"{name} {token} {_state(rewrite, place)}"] = 1
        word = bare[place] if 0 <= place < count else ""
        features[f"{name} = {word}"] = 1
    features |= {
        f"start {before} | {first}": 1,
        f"end {last} | {behind}": 1,
        f"start {_state(rewrite, start - 1)} | {_state(rewrite, start)}": 1,
        f"end {_state(rewrite, end - 1)} | {_state(rewrite, end)}": 1,
        f"before two {_token(rewrite, start - 2)} {before}": 1,
        f"first two {first} {second}": 1,
        "begins in a name": start > 0
        and kinds[start] is Kind.NAME
        and kinds[start - 1] is Kind.NAME,
        "ends in a name": end < count
        and kinds[end] is Kind.NAME
        and kinds[end - 1] is Kind.NAME,
        "from the start": start == 0,
        "to the end": end == count,
    }
    if len(inner) <= 3:
        features[f"all {' '.join(inner)}"] = 1
    return features


def _joins(rewrite: AlignedRewrite, phrase: Phrase) -> Features:
    features: Features = {"article added": phrase.article}
    if len(phrase.spans) > 1:
        (_, left), (right, _) = phrase.spans
        gap = range(left, right)
        features["joined"] = 1
        features["gap"] = min(len(gap), 6)
        features["gap content"] = sum(rewrite.is_content[place] for place in gap)
        features["gap varied"] = sum(rewrite.varies[place] > 0 for place in gap)
        seam = f"{_token(rewrite, left - 1)} | {_token(rewrite, right)}"
        features[f"seam {seam}"] = 1
    return features


def _token(rewrite: AlignedRewrite, place: int) -> str:
    """A function word as it is, another by its kind; "^" and "$" beyond the ends."""
    if place < 0:
        return "^"
    if place >= len(rewrite.words):
        return "$"
    kind = rewrite.words.kinds[place]
    return rewrite.words.bare[place] if kind in FUNCTION_KINDS else kind.value


def _state(rewrite: AlignedRewrite, place: int) -> str:
    """New or old beside the question, varied or shared among the rewrites."""
    if not 0 <= place < len(rewrite.words):
        return "X"
    age = "N" if rewrite.new[place] else "O"
    return age + ("V" if rewrite.varies[place] > 0 else "S")
