"""Names, folders, laziness, and errors that name file, record and fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whichsense import datasets
from whichsense.errors import BadInput, DamagedData, MissingData, NoDataset
from whichsense.lab.datasets import GroundedQuestion


def put(folder: Path, rows: list[Any], name: str = "ambignq/dev.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows))
    return path


def question(number: int, text: str = "Who dug it?") -> dict[str, Any]:
    return {
        "id": str(number),
        "question": text,
        "annotations": [{"type": "singleAnswer", "answer": ["Ann"]}],
    }


def test_an_unknown_name_is_corrected() -> None:
    with pytest.raises(NoDataset, match=r"No dataset named 'asqa/dve'\. Did you mean 'asqa/dev'\?"):
        datasets.load("asqa/dve")
    with pytest.raises(NoDataset, match="several splits: name one of asqa/train, asqa/dev"):
        datasets.load("asqa")
    with pytest.raises(NoDataset, match="ambignq/dev"):
        datasets.load("ambignq/train", without=["ambignq/dew"])


def test_nothing_is_read_until_it_is_iterated(tmp_path: Path) -> None:
    dev = datasets.load("ambignq/dev", data_dir=tmp_path)
    put(tmp_path, [question(1), question(2)])
    assert len(list(dev)) == len(dev) == 2
    put(tmp_path, [question(1)])
    assert len(list(dev)) == 2, "len keeps what it read"
    assert len(list(datasets.load("ambignq/dev", data_dir=tmp_path))) == 1


def test_the_data_folder_is_given_or_named_or_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WHICHSENSE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert datasets.data_folder() == tmp_path / "cache" / "whichsense" / "data"
    monkeypatch.setenv("WHICHSENSE_DATA", str(tmp_path))
    assert datasets.data_folder() == tmp_path
    assert datasets.data_folder(tmp_path / "x") == tmp_path / "x"
    path = put(tmp_path, [question(1)])
    assert datasets.load("ambignq/dev").path == path


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        MissingData, match=r"whichsense data fetch ambignq/dev.*ambignq_light\.zip.*WHICHSENSE_DATA"
    ):
        next(iter(datasets.load("ambignq/dev", data_dir=tmp_path)))
    with pytest.raises(
        MissingData, match=r"cannot be downloaded automatically.*AskCQ.*cq_train\.json"
    ):
        next(iter(datasets.load("cambignq/train", data_dir=tmp_path)))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "Who?", "annotations": []}, r"record 2: no field 'id'"),
        ({"id": "2", "annotations": []}, r"record 2: no field 'question'"),
        ({"id": "2", "question": "Who?", "annotations": []}, r"record 2: 'annotations' is empty"),
        (
            {"id": "2", "question": ["Who?"]},
            r"record 2: 'question' must be a text, not \[\"Who\?\"\]",
        ),
        (
            {"id": "2", "question": "Who?", "annotations": "x"},
            r"record 2: 'annotations' must be a list",
        ),
        (
            {"id": "2", "question": "Who?", "annotations": [{"type": "odd"}]},
            r"annotations\[0\]: 'type' must be",
        ),
        (
            {
                "id": "2",
                "question": "Who?",
                "annotations": [{"type": "singleAnswer", "answer": []}],
            },
            "'answer' is empty",
        ),
        (
            {"id": "2", "question": "?", "annotations": [{"type": "singleAnswer", "answer": [1]}]},
            "list of texts",
        ),
        ("not an object", "record 2: an object was expected"),
    ],
)
def test_a_bad_record_is_named_with_its_fix(tmp_path: Path, row: Any, message: str) -> None:
    put(tmp_path, [question(1), row])
    with pytest.raises(DamagedData, match=message) as caught:
        list(datasets.load("ambignq/dev", data_dir=tmp_path))
    assert str(tmp_path / "ambignq" / "dev.json") in str(caught.value)
    assert "whichsense data fetch --force ambignq/dev" in str(caught.value)


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "NQ-open.dev.jsonl"
    path.write_bytes(b'{"question": "a", "answer": ["b"]}\n\n{"question": \n')
    with pytest.raises(
        DamagedData, match=r"NQ-open.dev.jsonl', line 3: not valid JSON .*Get the file again"
    ):
        list(datasets.load("nq_open/dev", data_dir=tmp_path))
    path.write_bytes(b'{"question": "caf\xe9", "answer": ["b"]}\n')
    with pytest.raises(DamagedData, match="line 1: not UTF-8"):
        list(datasets.load("nq_open/dev", data_dir=tmp_path))


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = put(tmp_path, [])
    path.write_text('[\n{"id": 1,\n')
    with pytest.raises(
        DamagedData, match=r"dev.json', line \d: not valid JSON.*Get the file again"
    ):
        list(datasets.load("ambignq/dev", data_dir=tmp_path))
    path.write_text("3")
    with pytest.raises(DamagedData, match="a list of records was expected"):
        list(datasets.load("ambignq/dev", data_dir=tmp_path))


def test_the_kind_that_is_asked_for_is_checked(tmp_path: Path) -> None:
    put(tmp_path, [question(1)])
    with pytest.raises(BadInput, match="holds Question records, not GroundedQuestion"):
        list(datasets.load("ambignq/dev", GroundedQuestion, data_dir=tmp_path))


def test_without_leaves_out_what_repeats(tmp_path: Path) -> None:
    put(
        tmp_path,
        [question(1, "Who dug the long tunnel?"), question(2, "Where is Oslo?")],
        "ambignq/train.json",
    )
    put(tmp_path, [question(3, "who dug the LONG tunnel")])
    train = datasets.load("ambignq/train", data_dir=tmp_path, without=["ambignq/dev"])
    assert [q.id for q in train] == ["2"]
    assert repr(train) == "load('ambignq/train', without=('ambignq/dev',))"


def test_every_catalog_entry_is_complete() -> None:
    from whichsense.lab.datasets.dataset import READERS

    for name in datasets.names():
        about = datasets.entry(name)
        assert about.reader in READERS, name
        assert (
            about.family.licence and about.family.citation.startswith("@") and about.family.homepage
        ), name
        assert about.family.homepage.startswith("https://")
        assert about.download is None or about.download.url.startswith("https://")
        for release in about.releases:
            assert len(release.sha256) in (0, 64), name
            assert release.files


def test_the_sample_comes_with_the_package() -> None:
    questions, unanswerable = (
        list(datasets.load("sample/questions")),
        list(datasets.load("sample/unanswerable")),
    )
    assert any(question.is_ambiguous for question in questions)
    assert all(
        pair.evidence
        for q in questions
        for annotation in q.annotations
        for pair in annotation.pairs
    )
    assert not any(question.is_answerable for question in unanswerable)


@pytest.mark.parametrize("bad", ["[" * 200_000, "7" * 5_000], ids=["deep", "long"])
@pytest.mark.parametrize("name", ["ambignq/dev", "nq_open/dev"])
def test_json_made_to_break_parsers(tmp_path: Path, name: str, bad: str) -> None:
    path = (
        tmp_path
        / datasets.entry(name).family.folders[0]
        / ("dev.json" if name == "ambignq/dev" else "dev.jsonl")
    )
    path.parent.mkdir()
    path.write_text(f"\n{bad}\n")
    with pytest.raises(DamagedData, match="Get the file again"):
        list(datasets.load(name, data_dir=tmp_path))
    assert not datasets.check(name, tmp_path).ok
