"""Questions and passages as the papers' inputs; outputs as answers; batches; scores of given answers."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from whichsense.errors import BadInput
from whichsense.lab.tasks.generation import EncodedExample, collate_examples
from whichsense.lab.train.tiny import byte_level
from whichsense.models.seq2seq.decoding import Search
from whichsense.models.seq2seq.formats import SEPARATOR, Codec, InputForm, composed, plain, read_by
from whichsense.models.seq2seq.generator import Generator, plan_batches
from whichsense.models.seq2seq.network import Network
from whichsense.testing import passage_hit

HITS = [
    passage_hit("Ann won the race in 2012.", "Race"),
    passage_hit("Bob won it in 2013.", "Second race"),
]
QUESTION = "Who won the race?"


def codec(kind: str, lowercase: bool = False) -> Codec:
    special = (
        ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        if kind == "bart"
        else ["<pad>", "</s>", "<unk>"]
    )
    tokenizer = byte_level(
        [QUESTION, *(f"{hit.passage.title} {hit.passage.text}" for hit in HITS)], special
    )
    tokenizer.add_special_tokens({"additional_special_tokens": [SEPARATOR]})
    return Codec(tokenizer, kind, lowercase)  # type: ignore[arg-type]


def shown(made: Codec, ids: list[int]) -> str:
    return str(made.tokenizer.decode(ids, skip_special_tokens=False))


def test_bart_concatenated() -> None:
    made = codec("bart")
    found = composed(made, InputForm(fusion=False), [QUESTION], HITS)
    assert [shown(made, ids) for ids in found] == [
        "<s>Who won the race?</s>Race</s>Ann won the race in 2012.</s>Second race</s>Bob won it in 2013.</s>"
    ]
    cut = composed(made, InputForm(fusion=False, input_tokens=12), [QUESTION], HITS)
    assert len(cut[0]) == 12 and cut[0][-1] == made.end


def test_bart_fused() -> None:
    made = codec("bart")
    found = composed(made, InputForm(), ["Ann", QUESTION], HITS)
    assert [shown(made, ids) for ids in found] == [
        "<s>Ann<SEP>Who won the race?</s>Race</s>Ann won the race in 2012.</s>",
        "<s>Ann<SEP>Who won the race?</s>Second race</s>Bob won it in 2013.</s>",
    ]
    short = composed(
        made, InputForm(passages=1, question_tokens=3, passage_tokens=4), [QUESTION], HITS
    )
    assert len(short) == 1 and len(short[0]) == 1 + 3 + 1 + 4 + 1
    assert shown(made, composed(made, InputForm(), [QUESTION], [])[0]) == "<s>Who won the race?</s>"


def test_what_does_not_fit_is_not_read() -> None:
    made = codec("bart")
    many = [
        passage_hit(f"{'word ' * 20}number {number}.", f"Title {number}") for number in range(60)
    ]
    form = InputForm(fusion=False, input_tokens=200)
    seen = read_by(made, form, [QUESTION], many)
    whole = composed(made, form, [QUESTION], many)
    assert whole == composed(made, form, [QUESTION], seen) and len(whole[0]) == 200
    assert 1 < len(seen) < 10 and seen == many[: len(seen)]
    assert f"number {len(seen) - 2}." in shown(
        made, whole[0]
    ) and f"Title {len(seen)}" not in shown(made, whole[0])
    assert read_by(made, InputForm(passages=7), [QUESTION], many) == many[:7]


def test_t5_inputs() -> None:
    made = codec("t5")
    assert shown(made, composed(made, InputForm(), [QUESTION], HITS)[0]) == (
        "question: Who won the race? title: Race context: Ann won the race in 2012.</s>"
    )
    assert (
        shown(made, plain(made, "Who won? context: info: a", 100)[0])
        == "Who won? context: info: a</s>"
    )
    assert len(plain(made, QUESTION, 3)[0]) == 3


def test_targets_and_answers() -> None:
    made = codec("bart")
    target = made.target(["Ann", "Bob"], 30)
    assert shown(made, target) == "<s>Ann<SEP>Bob</s>"
    assert made.texts(target) == ["Ann", "Bob"]
    assert made.texts([*made.ids("Ann"), made.separator, made.separator, *made.ids("Ann")]) == [
        "Ann"
    ]
    assert (
        made.target(["Ann", "Bob"], 3)[-1] == made.end and len(made.target(["Ann", "Bob"], 3)) == 3
    )
    assert codec("t5").target(["Ann"], 30)[-1] == codec("t5").end
    assert codec("bart", lowercase=True).ids("ANN") == made.ids("ann")


def test_a_form_that_cannot_be() -> None:
    with pytest.raises(BadInput, match="passage_tokens"):
        InputForm(passage_tokens=0)


def generator(made: Codec, tokens: int = 0) -> Generator:
    torch.manual_seed(3)
    config: Any = transformers.BartConfig(
        vocab_size=len(made.tokenizer), d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=128, init_std=0.3,
    )  # fmt: skip
    network = Network(transformers.BartForConditionalGeneration(config)).eval()
    return Generator.of(network, made, InputForm(passages=2, output_tokens=12), tokens)


def test_generation_does_not_depend_on_batches() -> None:
    made = codec("bart")
    form = InputForm(passages=2, output_tokens=12)
    questions = [QUESTION, "Who?", "Who won the race in 2013, Bob or Ann?", "Where was it?"]
    inputs = [
        composed(made, form, [one], HITS[: 1 + number % 2]) for number, one in enumerate(questions)
    ]
    known = [made.ids("Ann"), made.ids("Bob Ann"), [], made.ids("2012")]
    for beams in (1, 3):
        at_once = generator(made, 10_000).generate(inputs, Search(beams, 10), known)
        by_one = generator(made, 1).generate(inputs, Search(beams, 10), known)
        assert [[one.tokens for one in own] for own in at_once] == [
            [one.tokens for one in own] for own in by_one
        ]
        for own, begin in zip(at_once, known, strict=True):
            assert own[0].tokens[: len(begin)] == begin


def test_scores_are_log_probabilities_and_share_one_encoding() -> None:
    made = codec("bart")
    used = generator(made)
    inputs = [
        composed(made, used.form, [QUESTION], HITS),
        composed(made, used.form, ["Who?"], HITS[:1]),
    ]
    targets = [
        [made.target([answer], 12) for answer in ("Ann", "Bob and Ann", "2013")],
        [made.target(["Bob"], 12)],
    ]
    found = used.score(inputs, targets)
    for sequences, several, scores in zip(inputs, targets, found, strict=True):
        for target, score in zip(several, scores, strict=True):
            batch = collate_examples([EncodedExample(sequences, target)])
            with torch.inference_mode():
                assert score == pytest.approx(-used.network(batch).item() * len(target), abs=1e-3)
    assert used.score(inputs, [[], targets[1]])[0] == []


def test_batches_are_planned_by_length() -> None:
    sizes = [10, 90, 50, 20, 80, 10]
    plan = plan_batches(sizes, room=100)
    assert sorted(place for batch in plan for place in batch) == list(range(6))
    assert all(max(sizes[place] for place in batch) * len(batch) <= 100 for batch in plan)
    assert plan_batches([500], room=100) == [[0]]
