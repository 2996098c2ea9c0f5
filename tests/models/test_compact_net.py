"""The compact model in torch: its arithmetic while it is trained is that of the exported model."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from whichsense.errors import BadInput
from whichsense.models.compact.nets import (
    CompactConfig,
    CompactNet,
    QuantizedLinear,
    from_bert,
    quantize_weight,
    set_quantization,
    weight_steps,
)

SHAPE = CompactConfig(60, 32, 4, 64, 64, layers=3, early=1)


@pytest.fixture
def linear() -> QuantizedLinear:
    torch.manual_seed(0)
    return QuantizedLinear(16, 8)


def test_weights_are_whole_codes_up_to_63(linear: QuantizedLinear) -> None:
    codes = quantize_weight(linear.weight) / weight_steps(linear.weight)
    assert torch.allclose(codes, codes.round(), atol=1e-4)
    assert torch.equal(
        codes.abs().amax(dim=1).round(), torch.full((8,), 63.0)
    )  # one scale an output, all of it used
    assert (quantize_weight(linear.weight) - linear.weight).abs().max() <= weight_steps(
        linear.weight
    ).max() / 2 + 1e-7


@pytest.mark.parametrize("after_gelu", [False, True])
def test_inputs_are_codes_of_eight_bits(after_gelu: bool) -> None:
    """Seen through an identity: steps of 0.01, from -1.28 on or, after GELU, from -0.17 on; what is beyond is cut."""
    linear = QuantizedLinear(4, 4, after_gelu=after_gelu)
    linear.weight.data, linear.bias.data = torch.eye(4), torch.zeros(4)
    linear.scale.data.fill_(float(torch.log(torch.tensor(0.01))))
    linear.quantize_activations = True
    found = linear(torch.tensor([[0.014, -5.0, 5.0, 0.5]]))[0].tolist()
    expected = [0.01, -0.17, 2.38, 0.5] if after_gelu else [0.01, -1.28, 1.27, 0.5]
    assert found == pytest.approx(expected, abs=1e-5)


def test_gradients_pass_through_the_rounding(linear: QuantizedLinear) -> None:
    linear.quantize_weights = linear.quantize_activations = True
    values = torch.randn(5, 16, requires_grad=True)
    linear(values).square().sum().backward()
    for tensor in (values, linear.weight, linear.bias, linear.scale):
        assert tensor.grad is not None and tensor.grad.abs().sum() > 0


def test_calibration_fits_the_inputs(linear: QuantizedLinear) -> None:
    values = torch.randn(400, 16) * 3
    linear.calibrate(values)
    assert linear.scale.exp().item() == pytest.approx(values.abs().max().item() / 127, rel=0.2)
    exact = linear(values)
    linear.quantize_activations = True
    assert 0 < (linear(values) - exact).abs().max() < 0.1


def test_one_quantized_tensor_has_one_scale() -> None:
    net = CompactNet(SHAPE)
    attention = net.encoder.layers[0].attention
    assert attention.query.scale is attention.key.scale is attention.value.scale
    assert attention.output.scale is not attention.query.scale


def test_quantization_changes_little_and_can_be_turned_off() -> None:
    torch.manual_seed(1)
    net = CompactNet(SHAPE).eval()
    ids, mask = torch.randint(1, 60, (2, 12)), torch.ones(2, 12, dtype=torch.bool)
    exact = net.read(ids, ids * 0, mask)["states"]
    set_quantization(net, weights=True, activations=True)
    coded = net.read(ids, ids * 0, mask)["states"]
    assert 0 < (exact - coded).abs().mean() < 0.2
    set_quantization(net, weights=False, activations=False)
    assert torch.equal(net.read(ids, ids * 0, mask)["states"], exact)


def test_compiling_is_by_layers_and_changes_no_name() -> None:
    net = CompactNet(SHAPE)
    names = list(net.state_dict())
    net.compile(backend="eager")
    assert all(layer._compiled_call_impl is not None for layer in net.encoder.layers)
    assert net._compiled_call_impl is None and list(net.state_dict()) == names


def test_padding_changes_nothing() -> None:
    torch.manual_seed(1)
    net = CompactNet(SHAPE).eval()
    ids, mask = torch.randint(1, 60, (1, 12)), torch.ones(1, 12, dtype=torch.bool)
    alone = net.read(ids, ids * 0, mask)
    wide, seen = torch.cat([ids, ids], 1), torch.cat([mask, ~mask], 1)
    padded = net.read(wide, wide * 0, seen)
    assert torch.allclose(alone["states"], padded["states"][:, :12], atol=1e-5)
    assert torch.allclose(alone["relevance"], padded["relevance"], atol=1e-5)


def bert(**changes: int) -> Any:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    rest = {
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "hidden_act": "gelu_pytorch_tanh",
    }
    return transformers.BertModel(
        transformers.BertConfig(**sizes, **rest, **changes), add_pooling_layer=False
    ).eval()


def test_from_bert_loads_every_weight() -> None:
    """The states are BERT's own."""
    torch.manual_seed(2)
    model = bert()
    net = from_bert(model.state_dict(), SHAPE).eval()
    ids, mask = torch.randint(1, 60, (2, 12)), torch.ones(2, 12, dtype=torch.bool)
    mask[1, 7:] = False
    types = (torch.arange(12) > 5).long().expand(2, -1)
    with torch.no_grad():
        expected = model(
            input_ids=ids, attention_mask=mask.long(), token_type_ids=types
        ).last_hidden_state
        found = net.read(ids, types, mask)["states"]
    assert torch.allclose(found[mask], expected[mask], atol=1e-5)


def test_from_bert_names_what_is_missing() -> None:
    state = bert().state_dict()
    del state["encoder.layer.2.output.dense.weight"]
    with pytest.raises(BadInput, match=r"encoder\.layers\.2\.narrow\.weight"):
        from_bert(state, SHAPE)
