"""The network computes what transformers computes: without padding, with caches, for BART and both kinds of T5."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from seq2seq_models import KINDS, batch, plain, sequences, tiny

from whichsense.errors import BadInput
from whichsense.models.seq2seq.decoding import Search, run_search
from whichsense.models.seq2seq.network import Network
from whichsense.models.seq2seq.ragged import IGNORED, RaggedRows, shift_labels
from whichsense.models.seq2seq.transformer import family_of

LENGTHS = [[5, 9, 3], [17, 4, 4], [2, 3, 3]]


def targets() -> Any:
    labels = torch.randint(4, 60, (3, 6), generator=torch.Generator().manual_seed(1))
    labels[1, 4:] = IGNORED
    return labels


def remembered(network: Network, inputs: list[list[list[int]]]) -> tuple[Any, Any]:
    layers = network.layers(torch.float32)
    made = batch(inputs, targets()[: len(inputs)])
    with torch.inference_mode():
        memory = network.encode(made.ids, made.passages, layers)
        return layers, network.remember(memory, made.questions, layers)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [LENGTHS, [[6, 6], [6, 6]]], ids=["ragged", "full"])
def test_fused_scores_equal_the_plain_computation(kind: str, lengths: list[list[int]]) -> None:
    model, inputs = tiny(kind), sequences(lengths)
    network, labels = Network(model).eval(), targets()[: len(lengths)]
    made = batch(inputs, labels)
    with torch.inference_mode():
        outputs, mask = plain(model, inputs)
        theirs = model(encoder_outputs=outputs, attention_mask=mask, labels=labels)
        ours = network.logits(
            network.encode(made.ids, made.passages),
            made.questions,
            shift_labels(labels, network.signs),
        )
        assert (ours - theirs.logits)[labels != IGNORED].abs().max() < 1e-4
        assert network(made).item() == pytest.approx(theirs.loss.item(), abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_the_plain_ones(kind: str) -> None:
    model, inputs, labels = tiny(kind), sequences(LENGTHS), targets()
    outputs, mask = plain(model, inputs)
    model(encoder_outputs=outputs, attention_mask=mask, labels=labels).loss.backward()
    theirs = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    network = Network(model)
    network.gradient_checkpointing_enable()
    network.train()
    network(batch(inputs, labels)).backward()
    assert max(theirs[name].abs().max() for name in theirs) > 1e-3
    for name, parameter in model.named_parameters():
        assert torch.allclose(parameter.grad, theirs[name], atol=1e-5), name


@pytest.mark.parametrize("kind", KINDS)
def test_steps_over_caches_equal_all_places_at_once(kind: str) -> None:
    network, inputs, labels = Network(tiny(kind)).eval(), sequences(LENGTHS), targets()
    made = batch(inputs, labels)
    layers, memory = remembered(network, inputs)
    with torch.inference_mode():
        shifted = shift_labels(labels, network.signs)
        at_once = network.logits(network.encode(made.ids, made.passages), made.questions, shifted)
        caches = network.caches(3, 8, torch.float32)
        for place in range(6):
            step = network.step(shifted[:, place], torch.tensor([place]), caches, memory, layers)
            assert (step - at_once[:, place]).abs().max() < 1e-4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beams", [1, 2, 4])
def test_search_finds_what_generate_finds(kind: str, beams: int) -> None:
    """Greedy and beam search give the outputs of transformers' own, over the same fused states."""
    model, inputs = tiny(kind), sequences(LENGTHS)
    network = Network(model).eval()
    with torch.inference_mode():
        outputs, mask = plain(model, inputs)
        theirs = model.generate(
            encoder_outputs=outputs,
            attention_mask=mask,
            num_beams=beams,
            do_sample=False,
            max_new_tokens=9,
        ).tolist()
    layers, memory = remembered(network, inputs)
    found = run_search(network, layers, memory, Search(beams, 9))
    end = model.config.eos_token_id
    for row, own in zip(theirs, found, strict=True):
        tail = row[1:]
        tail = tail[: tail.index(end)] if end in tail else tail
        assert own[0].tokens == [token for token in tail if token != model.config.pad_token_id]
        assert [one.score for one in own] and len(own) <= beams


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beams", [1, 3])
def test_batched_equals_one_by_one(kind: str, beams: int) -> None:
    network, inputs = (Network(tiny(kind)).eval(), sequences([[5, 9, 3], [17, 4], [2], [8, 8, 8]]))
    layers, memory = remembered(network, inputs[:3])
    together = run_search(network, layers, memory, Search(beams, 8))
    for number, question in enumerate(inputs[:3]):
        layers, memory = remembered(network, [question])
        alone = run_search(network, layers, memory, Search(beams, 8))[0]
        assert [one.tokens for one in alone] == [one.tokens for one in together[number]]
        assert [one.score for one in alone] == pytest.approx(
            [one.score for one in together[number]], abs=1e-4
        )


@pytest.mark.parametrize("beams", [1, 3])
def test_prefixes_are_kept_and_cost_nothing(beams: int) -> None:
    network, inputs = Network(tiny("bart")).eval(), sequences(LENGTHS)
    layers, memory = remembered(network, inputs)
    found = run_search(network, layers, memory, Search(beams, 8), prefixes=[[9, 11, 4], [], [7]])
    assert found[0][0].tokens[:3] == [9, 11, 4] and found[2][0].tokens[:1] == [7]
    free = run_search(network, layers, memory, Search(beams, 8))
    assert found[1][0].tokens[:8] == free[1][0].tokens[:8]
    made = batch(inputs[:1], torch.tensor([[*found[0][0].tokens, 2]]))
    with torch.inference_mode():  # the score is that of the tokens behind the prefix
        scores = network.logits(
            network.encode(made.ids, made.passages),
            made.questions,
            shift_labels(made.labels, network.signs),
        )
        own = scores.log_softmax(-1)[0].gather(1, made.labels[0][:, None])[3:, 0]
    ended = len(found[0][0].tokens) < 11
    assert found[0][0].score == pytest.approx(
        float(own.sum() if ended else own[:-1].sum()), abs=1e-3
    )


def test_shortest_and_longest_hold() -> None:
    network = Network(tiny("bart")).eval()
    layers, memory = remembered(network, sequences(LENGTHS))
    for beams in (1, 3):
        found = run_search(network, layers, memory, Search(beams, 7, shortest=7))
        assert all(len(one.tokens) == 7 for several in found for one in several)


def test_training_with_dropout_follows_the_seed() -> None:
    network, made = (
        Network(tiny("bart", dropout=0.2)).train(),
        batch(sequences(LENGTHS), targets()),
    )
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(network(made).item())
    assert losses[0] == losses[1] != losses[2]


def test_label_weights() -> None:
    network, made = Network(tiny("bart")).eval(), batch(sequences(LENGTHS), targets())
    once = network(made).item()
    assert network(
        made._replace(weights=torch.full(made.labels.shape, 3.0))
    ).item() == pytest.approx(3 * once)


def test_autocast_computes_in_half_precision() -> None:
    network, made = Network(tiny("t5")).eval(), batch(sequences(LENGTHS), targets())
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        assert network.encode(made.ids, made.passages).dtype == torch.bfloat16
        half = network(made).item()
    assert half == pytest.approx(network(made).item(), rel=0.05)


def test_ragged_there_and_back() -> None:
    rows = RaggedRows.of([3, 1, 2])
    flat = torch.arange(12.0).view(6, 2)
    table = rows.padded(flat)
    assert table.shape == (3, 3, 2) and table[1, 1:].abs().sum() == 0
    assert torch.equal(rows.flat(table), flat)
    mask = rows.mask()
    assert mask is not None and mask.sum(-1).flatten().tolist() == [3, 1, 2]
    assert RaggedRows.of([2, 2]).mask() is None


def test_other_families_are_refused() -> None:
    class Other:
        class config:
            model_type = "pegasus"

    with pytest.raises(BadInput, match="BART or T5"):
        family_of(Other())
