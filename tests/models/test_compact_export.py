"""The exported graphs compute what torch computes: exactly in float, and as the training's own arithmetic in int8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiny_compact import VOCABULARY, exported, tiny_net, tiny_writer, weights_of
from whichsense.errors import BadInput, WhichsenseError
from whichsense.models.compact.encoder import WEIGHTS, CompactModel, pair
from whichsense.models.compact.export import GRAPHS, MORE_GRAPHS, export, load
from whichsense.models.compact.tagger import FRAME
from whichsense.models.onnx_graph import read_constants

for needed in ("onnx", "onnxruntime"):
    pytest.importorskip(needed)
torch = pytest.importorskip("torch")
nets = pytest.importorskip("whichsense.models.compact.nets")

QUESTION = "Who wrote Dune?"
PASSAGES = [
    ("Dune (novel)", "Dune is a novel of 1965 by Frank Herbert."),
    (
        "Dune",
        "The film of 1984 was directed by David Lynch, the film of 2021 by Denis Villeneuve. " * 3,
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
    net.encoder.words.weight.data = torch.tensor(model.words.vectors(range(len(VOCABULARY))))
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
        assert found.relevance == pytest.approx(float(expected["relevance"][row]), abs=near)
        assert found.ambiguity == pytest.approx(float(expected["ambiguity"][row]), abs=near)
        np.testing.assert_allclose(found.span, expected["span"][row, : len(made)], atol=near)
        np.testing.assert_allclose(found.states, expected["states"][row, : len(made)], atol=near)
        assert np.abs(found.states - expected["states"][row, : len(made)].numpy()).mean() < near / 4


def test_verdicts_are_the_nets(tmp_path: Path) -> None:
    """A verdict depends on three states; other spans of the same passages change nothing."""
    net, _ = tiny_net()
    model = CompactModel(exported(tmp_path))
    states = np.random.default_rng(0).normal(size=(2, 9, 48)).astype(np.float32)
    first, last = (torch.tensor([[1, 4, 4], [2, 2, 8]]), torch.tensor([[1, 6, 7], [3, 5, 8]]))
    expected = net.verdict(torch.from_numpy(states), first, last).detach().numpy()
    for row in range(2):
        edges = np.stack(
            [states[row, [0, one, other]] for one, other in zip(first[row], last[row], strict=True)]
        )
        np.testing.assert_allclose(model.verdicts(edges), expected[row], atol=1e-4)
        np.testing.assert_allclose(model.verdicts(edges[1:2]), expected[row, 1:2], atol=1e-4)
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
        assert again.relevance == found.relevance and (again.states == found.states).all()


@pytest.mark.parametrize("for_people", [False, True])
def test_what_is_loaded_exports_the_same(for_people: bool, tmp_path: Path) -> None:
    first = exported(tmp_path / "first", for_people=for_people)
    again = tmp_path / "again"
    found = load(first)
    export(found.weights, found.shape, found.vocabulary, again, settings=found.config)
    names = {path.name for path in first.iterdir()}
    assert names == {path.name for path in again.iterdir()}
    expected = {*GRAPHS, *(MORE_GRAPHS if for_people else ())}
    assert names == {*expected, "embeddings.npz", "config.json"}
    for name in names:
        assert (first / name).read_bytes() == (again / name).read_bytes(), name


def test_the_verifier_is_a_late_half_of_its_own(tmp_path: Path) -> None:
    """It reads on where the encoder's early half ends: as another net with these first layers does."""
    model = CompactModel(exported(tmp_path, int8=False, for_people=True))
    pairs, early, late = encoded(model)
    net, _ = tiny_net()
    other, _ = tiny_net(1)
    # The verifier has the encoder's tables and first two layers.
    other.encoder.load_state_dict(net.encoder.state_dict() | late_layers(other))
    for made, own, found in zip(pairs, late, model.verify(pairs), strict=True):
        ids, types = torch.tensor([made.ids]), torch.tensor([made.types])
        with torch.no_grad():
            expected = other.read(ids, types, torch.ones_like(ids, dtype=torch.bool))
        assert found.relevance == pytest.approx(float(expected["relevance"]), abs=1e-4)
        assert found.ambiguity == pytest.approx(float(expected["ambiguity"]), abs=1e-4)
        np.testing.assert_allclose(found.span, expected["span"][0], atol=1e-4)
        assert np.abs(found.states - own.states).max() > 0.1
        edges = found.states[None, :3]
        first, last = torch.tensor([[1]]), torch.tensor([[2]])
        states = torch.from_numpy(found.states)[None]
        verdict = other.verdict(states, first, last).item()
        assert model.verifier_verdicts(edges)[0] == pytest.approx(verdict, abs=1e-4)
        assert model.verdicts(edges)[0] != pytest.approx(verdict, abs=1e-2)
    assert len(early) == len(pairs)


def late_layers(net: Any) -> dict[str, Any]:
    state = net.encoder.state_dict()
    late = ("layers.2.", "layers.3.")
    return {name: value for name, value in state.items() if name.startswith(late)}


def test_a_folder_without_a_verifier_asks_again_with_the_encoder(tmp_path: Path) -> None:
    model = CompactModel(exported(tmp_path))
    pairs, _, late = encoded(model)
    for own, found in zip(late, model.verify(pairs), strict=True):
        assert found.relevance == own.relevance
        np.testing.assert_array_equal(found.states, own.states)
        edges = own.states[None, :3]
        np.testing.assert_array_equal(model.verifier_verdicts(edges), model.verdicts(edges))


def test_the_loaded_net_is_the_quantized_one(tmp_path: Path) -> None:
    net, _ = tiny_net()
    found = load(exported(tmp_path)).weights
    assert {name for name in found if not name.startswith("writer.")} == net.state_dict().keys()
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


@pytest.mark.parametrize("name", ["config.json", "embeddings.npz", "writer.onnx", "verdict.onnx"])
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
    export(found.weights, found.shape, found.vocabulary, tmp_path, settings=found.config)
    # The tagger's and the support judge's graphs are exported by their own recipes.
    apart = {FRAME, "support.onnx"}
    graphs = {path.name for path in WEIGHTS.glob("*.onnx")} - apart
    assert {*GRAPHS} <= graphs <= {*GRAPHS, *MORE_GRAPHS}
    for name in (*graphs, "config.json"):
        assert (WEIGHTS / name).read_bytes() == (tmp_path / name).read_bytes(), name
    with np.load(WEIGHTS / "embeddings.npz") as own, np.load(tmp_path / "embeddings.npz") as again:
        assert own.files == again.files  # compressed bytes are another library's business
        for name in own.files:
            np.testing.assert_array_equal(own[name], again[name], err_msg=name)


def test_the_vocabulary_must_fit(tmp_path: Path) -> None:
    net, shape = tiny_net()
    with pytest.raises(BadInput, match="word pieces"):
        export(weights_of(net), shape, VOCABULARY[:-1], tmp_path)


def test_a_missing_weight_is_named(tmp_path: Path) -> None:
    net, shape = tiny_net()
    weights = {name: value for name, value in weights_of(net).items() if name != "span.bias"}
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


@pytest.mark.parametrize("name", MORE_GRAPHS)
@pytest.mark.parametrize("size", [0, 100])
def test_damaged_graphs_for_people_are_named(name: str, size: int, tmp_path: Path) -> None:
    """That they are missing is no damage."""
    path = exported(tmp_path, for_people=True) / name
    path.write_bytes(path.read_bytes()[:size])
    model = CompactModel(tmp_path)
    with pytest.raises(WhichsenseError, match=rf"{name}.*or train it again"):
        model.prepare()
    with pytest.raises(BadInput, match=r"train it again\.$"):
        load(tmp_path)
