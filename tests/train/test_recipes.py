"""Every recipe that ships: its keys exist, it trains at its tiny size, and a crash changes nothing."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from whichsense.errors import BadConfig
from whichsense.lab.datasets import names
from whichsense.lab.train import loop
from whichsense.lab.train.loop import Trained, train
from whichsense.lab.train.recipes import HOMES, TASKS, Recipe, load_recipe, shipped_recipes
from whichsense.lab.train.task import Task

RECIPES = shipped_recipes()
SHORT = (
    "train.epochs=0",
    "train.steps=2",
    "train.evaluate_every=2",
    "train.checkpoint_every=1",
    "train.patience=0",
)
FEW = ("data.limit=6", "data.dev_limit=2")


class Crash(Exception):
    pass


def crashing(task: Task[Any, Any], at: int) -> Task[Any, Any]:
    """The same task, but its loss fails the `at`-th time, as a kill would end it: without a word to the loop."""
    losses, real = 0, task.loss

    def loss(model: Any, batch: Any) -> Any:
        nonlocal losses
        losses += 1
        if losses == at:
            raise Crash
        return real(model, batch)

    task.loss = loss  # type: ignore[method-assign]
    return task


def weights(folder: Path) -> dict[str, Any]:
    path = loop.newest_checkpoint(folder)
    assert path is not None
    found: dict[str, Any] = torch.load(path, weights_only=True)
    return found


@pytest.fixture(scope="module")
def train_whole(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], tuple[Task[Any, Any], Trained]]:
    """A recipe's task, and its run from beginning to end, once for all tests."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("whole")

    @cache
    def trained(name: str) -> tuple[Task[Any, Any], Trained]:
        recipe = load_recipe(name, (*SHORT, *FEW), tiny=True)
        task = recipe.make()
        return task, train(task, recipe.train, folder / name, recipe=recipe.table)

    return trained


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_trains(name: str, train_whole: Callable[[str], tuple[Any, Trained]]) -> None:
    _, trained = train_whole(name)
    assert trained.steps == 2 and trained.metrics
    assert (trained.model / "selected.json").exists() and len(list(trained.model.iterdir())) > 1


@pytest.mark.parametrize("name", TASKS)
def test_crash_changes_nothing(
    name: str, tmp_path: Path, train_whole: Callable[[str], tuple[Any, Trained]]
) -> None:
    """A run of each task that crashes in its second step and is started again ends with the weights of a whole one."""
    first = next(recipe for recipe in RECIPES if load_recipe(recipe).task == name)
    recipe = load_recipe(first, (*SHORT, *FEW), tiny=True)
    task, whole = train_whole(first)
    expected = weights(whole.folder)["model"]
    with pytest.raises(Crash):
        train(crashing(task, 2 * recipe.train.accumulate), recipe.train, tmp_path / "crashed")
    assert weights(tmp_path / "crashed")["state"]["step"] == 1
    train(recipe.make(), recipe.train, tmp_path / "crashed")
    resumed = weights(tmp_path / "crashed")["model"]
    assert expected.keys() == resumed.keys() and all(
        torch.equal(expected[name], resumed[name]) for name in expected
    )


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_reads_at_full_size(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.table["about"].strip() and recipe.train.learning_rate > 0
    assert "tiny" not in json.dumps(recipe.table["model"])
    data = recipe.table["data"]
    assert {data["train"], data["dev"], *data.get("without", ())} <= set(names())


def test_every_task_has_a_recipe() -> None:
    assert {load_recipe(name).task for name in RECIPES} == set(TASKS)


def written(folder: Path, body: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(body)
    return path


GOOD = 'task = "ambiguity-detector"\n[train]\nsteps = 2\n'


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            'task = "rerankr"\n[train]\nsteps = 1',
            "No task named 'rerankr'. Did you mean 'reranker'?",
        ),
        (
            GOOD + "learning_rat = 1.0\n",
            "unknown key 'train.learning_rat'. Did you mean 'learning_rate'?",
        ),
        (GOOD + '[model]\nbse = "x"\n', "unknown key 'model.bse'. Did you mean 'base'?"),
        (GOOD + "[modle]\n", "unknown key 'modle'. Did you mean 'model'?"),
        ('task = "reranker"\n', "train.epochs or train.steps"),
        ("steps = 1\n", "'task' must name what is trained"),
        ("task = ", "not valid TOML"),
    ],
)
def test_mistakes_are_told(body: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(BadConfig) as error:
        load_recipe(written(tmp_path, body))
    assert told in str(error.value)


def test_changes(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD + '[tiny]\nmodel = { base = "tiny-bert" }\n')
    recipe: Recipe = load_recipe(
        path, ["train.steps=7", "model.longest=32", "data.train=sample/questions"], tiny=True
    )
    assert (recipe.train.steps, recipe.options.model.longest, recipe.options.model.base) == (
        7,
        32,
        "tiny-bert",
    )
    assert recipe.options.data.train == "sample/questions" and recipe.table["train"]["steps"] == 7
    with pytest.raises(BadConfig, match=r"--set table\.key=value"):
        load_recipe(path, ["train.steps"])
    with pytest.raises(BadConfig, match=r"no recipe .* Did you mean 'reranker-nq'"):
        load_recipe(tmp_path / "reranker-nk.toml")
    assert load_recipe("reranker-nq").task == load_recipe("reranker-nq.toml").task == "reranker"
    with pytest.raises(BadConfig, match="--tiny"):
        load_recipe(written(tmp_path, GOOD), tiny=True)


VARIANTS = """
[model]
base = "a"
longest = 64
[variants.short]
model.longest = 32
tiny.model.longest = 16
[tiny]
model = { base = "tiny-bert", longest = 24 }
"""


def test_variants(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD + VARIANTS)
    plain = load_recipe(path)
    short = load_recipe(f"{path}:short")
    tiny = load_recipe(f"{path}:short", tiny=True)
    assert (plain.name, short.name) == ("recipe", "short")
    assert plain.table["model"] == {"base": "a", "longest": 64}
    assert short.table["model"] == {"base": "a", "longest": 32}
    assert tiny.table["model"] == {"base": "tiny-bert", "longest": 16}
    # The run's record keeps the merged recipe, which does not depend on how it is written down.
    assert short.table.keys() == plain.table.keys() == {"task", "train", "model"}
    with pytest.raises(BadConfig, match=r"no variant 'shrt'. Did you mean 'short'"):
        load_recipe(f"{path}:shrt")
    with pytest.raises(BadConfig, match=r"\[variants.short\]"):
        load_recipe(written(tmp_path, GOOD + "[variants]\nshort = 1\n"))
    with pytest.raises(BadConfig, match=r"\[variants.NAME\]"):
        load_recipe(written(tmp_path, "variants = 1\n" + GOOD))


def test_variants_are_found_by_name() -> None:
    three, five = load_recipe("t5-open-book-3"), load_recipe("t5-open-book-5.toml")
    assert (three.name, three.options.form.passages) == ("t5-open-book-3", 3)
    assert (five.name, five.options.form.passages) == ("t5-open-book-5", 5)


def test_no_two_recipes_of_one_name() -> None:
    home = next(folder for folder in HOMES if folder.is_dir())
    tables = [tomllib.loads(path.read_text()) for path in home.glob("*.toml")]
    variants = [name for table in tables for name in table.get("variants", {})]
    assert len(tables) + len(variants) == len(RECIPES)


def test_include(tmp_path: Path) -> None:
    shared = tmp_path / "shared.toml"
    shared.write_text('[model]\nbase = "b"\nlongest = 64\n[tiny]\nmodel = { longest = 8 }\n')
    include = 'include = "shared.toml"\n'
    path = written(tmp_path, include + GOOD + "[model]\nlongest = 32\n")
    recipe = load_recipe(path)
    assert recipe.table == {
        "task": "ambiguity-detector",
        "train": {"steps": 2},
        "model": {"base": "b", "longest": 32},
    }
    assert load_recipe(path, tiny=True).options.model.longest == 8
    shared.write_text(include)
    with pytest.raises(BadConfig, match=r"'include' belongs in a recipe"):
        load_recipe(path)
    with pytest.raises(BadConfig, match=r"'include' must be the path of a TOML file"):
        load_recipe(written(tmp_path, 'include = "nowhere.toml"\n' + GOOD))
