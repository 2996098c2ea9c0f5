"""The exported graphs compute what torch computes: exactly in float, and as the training's own arithmetic in int8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiny_compact import VOCABULARY, exported, tiny_net, tiny_writer, weights_of
from whichsense.errors import BadInput, WhichsenseError
from whichsense.models.compact.encoder.inputs import pair
from whichsense.models.compact.encoder.runtime import WEIGHTS, CompactModel
from whichsense.models.compact.export import export
from whichsense.models.compact.loading import load
from whichsense.models.onnx_graph import read_constants

for needed in ("onnx", "onnxruntime"):
    pytest.importorskip(needed)
torch = pytest.importorskip("torch")
nets = pytest.importorskip("whichsense.models.compact.encoder.net")

QUESTION = "Who wrote Dune?"
PASSAGES = [
    ("Dune (novel)", "Dune is a novel of 1965 by Frank Herbert."),
    (
        "Dune",
        "The film of 1984 was directed by David Lynch, the film of 2021 by Denis Villeneuve. "
        * 3,
    ),
    ("", "Everest"),
]


def encoded(model: CompactModel) -> tuple[list[Any], list[Any], list[Any]]:
    question = model.tokenizer.ids(QUESTION)
    pairs = [pair(model.tokenizer, question, title, text) for title, text in PASSAGES]
    early = model.early(pairs)
    return pairs, early, model.late([states for states, _ in early])


# A value on the edge between two codes may fall to either side, which moves the states of a tiny model by a little.
@pytest.mark.parametrize(("int8", "near"), [(False, 1e-4), (True, 0.15)])
def test_the_encoder_equals_torch(int8: bool, near: float, tmp_path: Path) -> None:
    """In one batch with padding in torch, pair by pair without padding here."""
    model = CompactModel(exported(tmp_path, int8=int8))
    net, _ = tiny_net()
    net.encoder.words.weight.data = torch.tensor(
        model.words.vectors(range(len(VOCABULARY)))
    )
    nets.set_quantization(net, weights=int8, activations=int8)
    pairs, early, late = encoded(model)
    ids = torch.zeros(len(pairs), max(map(len, pairs)), dtype=torch.long)
    types, mask = ids.clone(), ids.bool()
    for row, made in enumerate(pairs):
        ids[row, : len(made)], types[row, : len(made)] = (
            torch.tensor(made.ids),
            torch.tensor(made.types),
        )
        mask[row, : len(made)] = True
    with torch.no_grad():
        expected = net.read(ids, types, mask)
    for row, made in enumerate(pairs):
        found = late[row]
        assert early[row][1] == pytest.approx(float(expected["exit"][row]), abs=near)
        assert found.relevance == pytest.approx(
            float(expected["relevance"][row]), abs=near
        )
        assert found.ambiguity == pytest.approx(
            float(expected["ambiguity"][row]), abs=near
        )
        np.testing.assert_allclose(
            found.span, expected["span"][row, : len(made)], atol=near
        )
        np.testing.assert_allclose(
            found.states, expected["states"][row, : len(made)], atol=near
        )
        assert (
            np.abs(found.states - expected["states"][row, : len(made)].numpy()).mean()
            < near / 4
        )


def test_verdicts_are_the_nets(tmp_path: Path) -> None:
    """A verdict depends on three states; other spans of the same passages change nothing."""
    net, _ = tiny_net()
    model = CompactModel(exported(tmp_path))
    states = np.random.default_rng(0).normal(size=(2, 9, 48)).astype(np.float32)
    first, last = (
        torch.tensor([[1, 4, 4], [2, 2, 8]]),
        torch.tensor([[1, 6, 7], [3, 5, 8]]),
    )
    expected = net.verdict(torch.from_numpy(states), first, last).detach().numpy()
    for row in range(2):
        edges = np.stack(
            [
                states[row, [0, one, other]]
                for one, other in zip(first[row], last[row], strict=True)
            ]
        )
        np.testing.assert_allclose(model.verdicts(edges), expected[row], atol=1e-4)
        np.testing.assert_allclose(
            model.verdicts(edges[1:2]), expected[row, 1:2], atol=1e-4
        )
    assert len({round(float(value), 4) for value in expected.ravel()}) == expected.size


def test_int8_differs_from_float_but_not_by_much(tmp_path: Path) -> None:
    exact = encoded(CompactModel(exported(tmp_path / "float", int8=False)))[2]
    coded = encoded(CompactModel(exported(tmp_path / "int8", int8=True)))[2]
    for one, other in zip(exact, coded, strict=True):
        assert 0 < np.abs(one.states - other.states).max() < 1
        assert np.corrcoef(one.states.ravel(), other.states.ravel())[0, 1] > 0.98


def test_a_pair_does_not_depend_on_the_others(tmp_path: Path) -> None:
    model = CompactModel(exported(tmp_path))
    pairs, _, together = encoded(model)
    assert (model.work.pairs, model.work.layers) == (3, 3 * 4)
    alone = CompactModel(tmp_path, threads=1)
    for made, found in zip(pairs, together, strict=True):
        (again,) = alone.late([alone.early([made])[0][0]])
        assert (
            again.relevance == found.relevance and (again.states == found.states).all()
        )


def test_what_is_loaded_exports_the_same(tmp_path: Path) -> None:
    first, again = exported(tmp_path / "first"), tmp_path / "again"
    found = load(first)
    export(found.weights, found.shape, found.vocabulary, again, settings=found.config)
    for name in (
        "early.onnx",
        "late.onnx",
        "verdict.onnx",
        "writer.onnx",
        "embeddings.npz",
        "config.json",
    ):
        assert (first / name).read_bytes() == (again / name).read_bytes(), name


def test_the_loaded_net_is_the_quantized_one(tmp_path: Path) -> None:
    net, _ = tiny_net()
    found = load(exported(tmp_path)).weights
    assert {
        name for name in found if not name.startswith("writer.")
    } == net.state_dict().keys()
    for name, module in net.named_modules():
        if isinstance(module, nets.QuantizedLinear):
            module.quantize_weights = True
            np.testing.assert_allclose(
                found[f"{name}.weight"], module.used_weight().detach(), atol=1e-6
            )
    writer = tiny_writer(net.encoder.words.weight.detach()).state_dict()
    assert {
        name.removeprefix("writer.") for name in found if name.startswith("writer.")
    } == writer.keys()
    np.testing.assert_allclose(
        found["writer.layers.1.wide.weight"], writer["layers.1.wide.weight"], atol=0.02
    )


def test_a_damaged_graph_is_told(tmp_path: Path) -> None:
    path = exported(tmp_path) / "early.onnx"
    assert read_constants(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BadInput, match="is not an ONNX file"):
        read_constants(path)


@pytest.mark.parametrize(
    "name", ["config.json", "embeddings.npz", "writer.onnx", "verdict.onnx"]
)
@pytest.mark.parametrize("body", [None, b"", b"[]", b'{"format": 4, "int8": true}'])
def test_a_folder_that_cannot_be_loaded_is_told(
    name: str, body: bytes | None, tmp_path: Path
) -> None:
    path = exported(tmp_path) / name
    path.unlink()
    if body is not None:
        path.write_bytes(body)
    with pytest.raises(BadInput, match=rf"{tmp_path.name}.*train it again\.$"):
        load(tmp_path)
    with pytest.raises(BadInput, match="int8"):
        load(exported(tmp_path / "float", int8=False))


def test_the_shipped_encoder_is_what_its_loaded_weights_export(tmp_path: Path) -> None:
    found = load(WEIGHTS)
    export(
        found.weights, found.shape, found.vocabulary, tmp_path, settings=found.config
    )
    for name in (
        "early.onnx",
        "late.onnx",
        "verdict.onnx",
        "writer.onnx",
        "config.json",
    ):
        assert (WEIGHTS / name).read_bytes() == (tmp_path / name).read_bytes(), name
    with (
        np.load(WEIGHTS / "embeddings.npz") as own,
        np.load(tmp_path / "embeddings.npz") as again,
    ):
        assert (
            own.files == again.files
        )  # compressed bytes are another library's business
        for name in own.files:
            np.testing.assert_array_equal(own[name], again[name], err_msg=name)


def test_the_vocabulary_must_fit(tmp_path: Path) -> None:
    net, shape = tiny_net()
    with pytest.raises(BadInput, match="word pieces"):
        export(weights_of(net), shape, VOCABULARY[:-1], tmp_path)


def test_a_missing_weight_is_named(tmp_path: Path) -> None:
    net, shape = tiny_net()
    weights = {
        name: value for name, value in weights_of(net).items() if name != "span.bias"
    }
    with pytest.raises(BadInput, match=r"span\.bias"):
        export(weights, shape, VOCABULARY, tmp_path)


@pytest.mark.parametrize(
    "name", ["config.json", "embeddings.npz", "early.onnx", "late.onnx", "verdict.onnx"]
)
@pytest.mark.parametrize("damage", ["missing", "cut", "empty"])
def test_damaged_weights_are_named(name: str, damage: str, tmp_path: Path) -> None:
    folder = exported(tmp_path)
    path = folder / name
    body = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(body[: len(body) // 3] if damage == "cut" else b"")
    with pytest.raises(WhichsenseError, match="or train it again"):
        CompactModel(folder).prepare()
