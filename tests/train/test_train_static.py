"""The static encoder's recipes: what is saved computes what was trained, and the second goes on from the first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from whichsense.errors import BadConfig
from whichsense.lab.tasks.static_encoder import FILE, StaticNet, StaticTask, TokenBags
from whichsense.lab.train.loop import train
from whichsense.lab.train.recipes import load_recipe
from whichsense.models.static import Static

FEW = (
    "data.limit=8",
    "data.dev_limit=8",
    "objective.batch=8",
    "train.steps=6",
    "train.evaluate_every=6",
)


@pytest.fixture(scope="module")
def distilled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    recipe = load_recipe("static-distil", FEW, tiny=True)
    return train(
        recipe.make(), recipe.train, tmp_path_factory.mktemp("distil"), recipe=recipe.table
    ).model


def test_what_is_saved_computes_what_was_trained(distilled: Path, tmp_path: Path) -> None:
    recipe = load_recipe("static", (*FEW, f"model.start={distilled}"), tiny=True)
    task = recipe.make()
    assert isinstance(task, StaticTask)
    trained = train(task, recipe.train, tmp_path, recipe=recipe.table)
    net = task.build()
    net.load_state_dict(torch.load(trained.model / "net.pt", weights_only=True))
    encoder = Static(trained.model / FILE)
    questions = ["Who founded Puma, and when?", "where is the"]
    texts = [
        ("Puma (brand)", "Rudolf Dassler founded Puma in 1948."),
        ("", "A lynx has tufted ears."),
    ]
    with torch.inference_mode():
        asked = net.questions(
            TokenBags.of([task.words.tokens(question) for question in questions])
        ).numpy()
        parts = (
            TokenBags.of([task.words.tokens(pair[which]) for pair in texts]) for which in (1, 0)
        )
        read = net.passages(*parts).numpy()
    assert np.sum(encoder.encode_questions(questions) * asked, axis=1).min() > 0.99
    assert (
        np.sum(encoder.encode_passages(["\n".join(pair) for pair in texts]) * read, axis=1).min()
        > 0.99
    )


def test_the_second_recipe_goes_on_from_the_first(distilled: Path) -> None:
    begun = StaticTask(
        load_recipe("static", (*FEW, f"model.start={distilled}"), tiny=True).options
    ).build()
    before = torch.load(distilled / "net.pt", weights_only=True)
    assert torch.equal(begun.vectors, before["vectors"])
    assert begun.net is not None and not any(name.startswith("net.") for name in before)


def test_question_layers_begin_by_adding_nothing() -> None:
    torch.manual_seed(0)
    plain, layered = (
        StaticNet(torch.randn(9, 8), torch.full((9,), 1 / 9), 4, 5, layers) for layers in (0, 2)
    )
    layered.vectors.data.copy_(plain.vectors.data)
    asked = TokenBags.of([[1, 2, 3], [], [4]])
    assert torch.allclose(plain.questions(asked), layered.questions(asked))


def test_too_many_dimensions_are_told() -> None:
    recipe = load_recipe("static", (*FEW, "model.dimensions=4096"), tiny=True)
    with pytest.raises(BadConfig, match=r"model\.dimensions"):
        StaticTask(recipe.options).build()
