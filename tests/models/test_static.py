from __future__ import annotations

import dataclasses
import importlib.util
import string
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from whichsense.errors import BadInput
from whichsense.models import static
from whichsense.models.static import Static, VectorTable
from whichsense.models.wordpiece import pieces
from whichsense.testing import FakeEncoder

WORDS = [
    "[UNK]",
    "the",
    "who",
    "wrote",
    "dune",
    "frank",
    "herbert",
    "lyon",
    "##s",
    "river",
    "rhone",
]
VOCABULARY = {word: place for place, word in enumerate(WORDS)}


@pytest.fixture
def encoder(tmp_path: Path) -> Static:
    codes = np.random.default_rng(0).integers(-127, 128, size=(len(WORDS), 16)).astype(np.int8)
    scale, weight = (
        np.full(len(WORDS), 0.01, dtype=np.float32),
        np.ones(len(WORDS), dtype=np.float32),
    )
    weight[:2] = 0
    path = tmp_path / "tiny.npz"
    VectorTable(
        VOCABULARY, codes, scale, weight, 2 * weight, 0.5, bridge=np.eye(64, 16, dtype=np.float32)
    ).save(path)
    return Static(path)


def random_net() -> dict[str, NDArray[np.float32]]:
    random, shapes = (
        np.random.default_rng(0),
        {"pos": (4, 16), "nf.weight": (16,), "nf.bias": (16,)},
    )
    linear = {"inn": (16, 16), "out": (16, 16), "blocks.0.qkv": (48, 16), "blocks.0.o": (16, 16)}
    linear |= {"blocks.0.a": (32, 16), "blocks.0.b": (16, 32)}
    for name, shape in linear.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    for name in ("blocks.0.n1", "blocks.0.n2"):
        shapes |= {f"{name}.weight": (16,), f"{name}.bias": (16,)}
    return {
        name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }


def test_unit_vectors_near_where_words_are_shared(encoder: Static) -> None:
    passages = encoder.encode_passages(["Dune\nFrank Herbert wrote it.", "Lyon\nThe river Rhône."])
    questions = encoder.encode_questions(["Who wrote Dune?", "the RIVER"])
    assert passages.dtype == np.float32 and passages.shape == (2, encoder.dimensions)
    np.testing.assert_allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-5)
    assert (questions @ passages.T).argmax(axis=1).tolist() == [0, 1]


def test_the_title_counts_apart(encoder: Static) -> None:
    apart, joined, bare = encoder.encode_passages(
        ["Lyon\n" + "dune " * 50, "Lyon " + "dune " * 50, "dune"]
    )
    lyon = encoder.encode_passages(["lyon"])[0]
    assert apart @ lyon > joined @ lyon > bare @ lyon


def test_words_without_weight_change_nothing(encoder: Static) -> None:
    one, other = encoder.encode_passages(["wrote dune", "The wrote, the (xyzzy) dune!"])
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_texts_without_words_are_zero(encoder: Static) -> None:
    assert not encoder.encode_passages(["", "…!", "the\nthe"]).any()
    assert encoder.encode_passages([]).shape == (0, 16) and encoder.encode_questions([]).shape == (
        0,
        16,
    )


def test_forgetting_words_changes_nothing(encoder: Static) -> None:
    texts = ["frank herbert", "lyon river dunes", "who wrote frank"]
    before = encoder.encode_passages(texts)
    forgetful = Static(encoder.weights, cache_size=2)
    np.testing.assert_array_equal(forgetful.encode_passages(texts), before)


def test_a_monstrous_text_is_cut(encoder: Static) -> None:
    vectors = encoder.encode_passages(["dune " * 10**5, "dunes" * 10**5, "\ud800 dune"])
    np.testing.assert_allclose(np.linalg.norm(vectors[[0, 2]], axis=1), 1, atol=1e-5)


def test_a_file_that_holds_no_vectors(tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_bytes(b"not a zip")
    for name in ("bad.npz", "missing.npz"):
        with pytest.raises(BadInput, match=name.replace(".", r"\.")):
            Static(tmp_path / name).encode_questions(["who"])


def test_the_net_sees_the_order_of_words(encoder: Static, tmp_path: Path) -> None:
    path = tmp_path / "net.npz"
    dataclasses.replace(VectorTable.load(encoder.weights), net=random_net()).save(path)
    vectors = Static(path).encode_questions(
        ["frank wrote dune", "dune wrote frank", "", "dune " * 600]
    )
    np.testing.assert_allclose(np.linalg.norm(vectors[[0, 1, 3]], axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] < 0.999 and not vectors[2].any()
    without = encoder.encode_questions(["frank wrote dune", "dune wrote frank"])
    np.testing.assert_allclose(without[0], without[1], atol=1e-6)


def test_questions_of_another_encoder_come_over_the_bridge(encoder: Static, tmp_path: Path) -> None:
    other = FakeEncoder(64)
    bridged = Static(encoder.weights, questions=other)
    assert bridged.name == encoder.name
    expected = other.encode_questions(["who wrote dune"])[0, :16]
    np.testing.assert_allclose(
        bridged.encode_questions(["who wrote dune"])[0],
        expected / np.linalg.norm(expected),
        atol=1e-3,
    )
    path = tmp_path / "bare.npz"
    dataclasses.replace(VectorTable.load(encoder.weights), bridge=None).save(path)
    with pytest.raises(BadInput, match="bridge"):
        Static(path, questions=other).encode_questions(["who"])


@pytest.mark.skipif(
    importlib.util.find_spec("tokenizers") is None, reason="tokenizers is the yardstick"
)
@settings(deadline=None, max_examples=300)
@given(
    st.text(
        st.characters(max_codepoint=0x4FF, exclude_categories=["Z", "C"])
        | st.sampled_from(string.ascii_letters + "中𠀀“…"),
        max_size=12,
    )
)
def test_words_are_cut_as_the_tokenizers_library_cuts_them(word: str) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    letters = {
        letter: place
        for place, letter in enumerate(["[UNK]", *string.printable, "é", "ß", "я", "中"])
    }
    letters |= {
        f"##{letter}": len(letters) + place for place, letter in enumerate(string.ascii_lowercase)
    }
    tokenizer = Tokenizer(models.WordPiece(letters, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    assert pieces(word, letters) == tokenizer.encode(word).ids


@pytest.mark.skipif(not static.WEIGHTS.exists(), reason="the weights are not here")
def test_the_shipped_vectors_know_what_is_near() -> None:
    encoder = Static()
    passages = encoder.encode_passages(
        [
            "Dune (novel)\nDune is a 1965 epic science fiction book by American author Frank Herbert.",
            "Lyon\nLyon is the third-largest city of France, where the Rhône and the Saône meet.",
            "Cheese\nCheese is a dairy food made of pressed milk curds.",
        ]
    )
    questions = encoder.encode_questions(
        ["who wrote dune", "which french town has two rivers", "what is milk used for"]
    )
    assert (questions @ passages.T).argmax(axis=1).tolist() == [0, 1, 2]
