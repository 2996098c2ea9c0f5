"""The support judge: what is said and what is missing, windows of long passages, the network and its nets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tiny_compact import exported
from whichsense.errors import WhichsenseError
from whichsense.models.compact.encoder import WEIGHTS, CompactModel
from whichsense.models.compact.scorer import linear
from whichsense.models.compact.support_judge import (
    WINDOW,
    Claim,
    Evidence,
    SupportJudge,
    SupportNets,
    split_title,
    terms,
)
from whichsense.protocols import Support

PASSAGE = (
    "Eiffel Tower\nThe Eiffel Tower is a wrought-iron lattice tower in Paris, France. It is named after the engineer "
    "Gustave Eiffel, whose company designed and built the tower from 1887 to 1889. Locally nicknamed La dame de fer, "
    "it was the centrepiece of the 1889 World's Fair. The tower is 330 metres tall."
)
COPIED = "The tower is 330 metres tall."
FILLER = "Nothing of interest happened on this day in the small village by the lake. "


@pytest.fixture(scope="module")
def judge() -> SupportJudge:
    """The one that ships."""
    return SupportJudge(CompactModel())


def said(claim: str, passage: str, judge: SupportJudge) -> float:
    tokenizer = judge.model.tokenizer
    evidence = Evidence.of(passage, tokenizer)
    own = Claim(claim, tokenizer)
    window = evidence.window(own.terms, tokenizer.vocabulary)
    return own.share_said(window)


def test_it_is_a_support(judge: SupportJudge) -> None:
    support: Support = judge
    assert support.supports([]) == []


def test_a_copied_sentence_is_supported(judge: SupportJudge) -> None:
    (probability,) = judge.supports([(COPIED, PASSAGE)])
    assert probability > 0.5


@pytest.mark.parametrize(
    ("true", "false"),
    [
        (
            "Gustave Eiffel's company built the tower from 1887 to 1889.",
            "Gustave Eiffel's company built the tower from 1897 to 1899.",
        ),
        (
            "It was the centrepiece of the 1889 World's Fair in Paris.",
            "It was the centrepiece of the 1889 World's Fair in Vienna.",
        ),
        ("The tower is 330 metres tall.", "The tower is 330 metres tall and weighs 10,100 tonnes."),
    ],
)
def test_what_is_not_said_is_less_probable(true: str, false: str, judge: SupportJudge) -> None:
    high, low = judge.supports([(true, PASSAGE), (false, PASSAGE)])
    assert high > 0.5 > low


_NOT_CAUGHT = pytest.mark.xfail(reason="a known limit: docs/support.md", strict=True)


@pytest.mark.parametrize(
    "false",
    [
        "The tower is 1889 metres tall.",
        "Gustave Eiffel is 330 metres tall.",
        "La dame de fer designed the tower from 1887 to 1889.",
        "The tower is not in Paris.",
        pytest.param("The tower was named after the 1889 World's Fair.", marks=_NOT_CAUGHT),
        pytest.param(
            "Gustave Eiffel's company built the tower from 1889 to 1887.", marks=_NOT_CAUGHT
        ),
    ],
)
def test_own_words_put_together_wrongly(false: str, judge: SupportJudge) -> None:
    (probability,) = judge.supports([(false, PASSAGE)])
    assert probability < 0.5


def test_another_passage_supports_nothing(judge: SupportJudge) -> None:
    (probability,) = judge.supports([(COPIED, f"Lake\n{FILLER * 3}")])
    assert probability < 0.2


@pytest.mark.parametrize("pair", [("", PASSAGE), (COPIED, ""), (" ", "\n"), ("", "")])
def test_nothing_supports_nothing(pair: tuple[str, str], judge: SupportJudge) -> None:
    assert judge.supports([pair]) == [0.0]


def test_a_batch_equals_single_calls(judge: SupportJudge) -> None:
    pairs = [(COPIED, PASSAGE), ("", PASSAGE), (COPIED, FILLER), (PASSAGE, PASSAGE)]
    singles = [judge.supports([pair])[0] for pair in pairs]
    assert judge.supports(pairs) == singles


def test_a_sentence_is_found_in_a_long_passage(judge: SupportJudge) -> None:
    long = FILLER * 60 + PASSAGE.partition("\n")[2] + " " + FILLER * 60
    absent = FILLER * 120
    high, low = judge.supports([(COPIED, long), (COPIED, absent)])
    assert high > 0.5 > low


def test_parts_far_apart_are_read_together(judge: SupportJudge) -> None:
    tokenizer = judge.model.tokenizer
    text = f"Ann Lee ran in 1990. {FILLER * 30} Bob Roe swam in 1991. {FILLER * 30}"
    claim = Claim("Ann Lee ran in 1990, Bob Roe swam in 1991.", tokenizer)
    evidence = Evidence.of(text, tokenizer)
    window = evidence.window(claim.terms, tokenizer.vocabulary)
    assert "Ann Lee ran" in window.text and "Bob Roe swam" in window.text


def test_windows_have_a_bounded_size(judge: SupportJudge) -> None:
    tokenizer = judge.model.tokenizer
    text = "word " * 1000 + ". " + FILLER * 40
    claim = Claim("A small village and a word.", tokenizer)
    window = Evidence.of(text, tokenizer).window(claim.terms, tokenizer.vocabulary)
    assert 0 < sum(sentence.tokens for sentence in window.sentences) <= WINDOW


def test_a_line_that_is_no_sentence_is_the_title() -> None:
    assert split_title("Dune\nA novel. It is long.") == ("Dune", "A novel. It is long.")
    assert split_title("A novel.\nIt is long.") == ("", "A novel.\nIt is long.")
    assert split_title("Dune") == ("", "Dune")


def test_numbers_are_compared_by_value(judge: SupportJudge) -> None:
    claim = "It sold 1,500 copies in twelve days."
    assert said(claim, "Copies sold in 12 days: 1500.", judge) == 1
    assert said(claim, "Copies sold in 12 days: 1600.", judge) < 1


def test_terms_have_kinds() -> None:
    kinds = {term.word: term.kind for term in terms("He met Anna Karenina in 1877 twice.")}
    assert kinds["anna"] == kinds["karenina"] == "name"
    assert kinds["1877"] == "number" and kinds["twice"] == "word"


def test_a_model_without_the_judge_uses_the_words(tmp_path: Path) -> None:
    judge = SupportJudge(CompactModel(exported(tmp_path)))
    high, low = judge.supports([("a dune", "dune"), ("a dune on everest", "dune")])
    assert high > 0.5 > low


def test_nets_are_saved_and_read(tmp_path: Path) -> None:
    nets = SupportNets(replace(linear(said=2.0, says=1.0), bias=-1.0))
    nets.save(tmp_path / "support.json")
    again = SupportNets.load(tmp_path / "support.json")
    rows = [{"said": 0.3, "says": 2.0}]
    assert again.network.probabilities(rows) == nets.network.probabilities(rows)
    (tmp_path / "support.json").write_text(json.dumps({"words": 3}))
    with pytest.raises(WhichsenseError, match="missing or damaged"):
        SupportNets.load(tmp_path / "support.json")


def test_shipped_weights_stay_small() -> None:
    added = [WEIGHTS / name for name in ("support.onnx", "support.json")]
    sizes = [path.stat().st_size for path in added if path.exists()]
    assert sizes and sum(sizes) < 5_000_000
