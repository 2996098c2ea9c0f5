"""whichsense report: one page that stands alone, with everything escaped."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from whichsense.cli.score import report_command
from whichsense.errors import BadInput

EVIL = "<script>alert('x')</script> & \"co\""


def result(name: str, scores: list[float], dataset: str = "nq") -> dict[str, Any]:
    questions = {
        f"q{i}": {
            "em": score,
            "question": f"Question {i} {EVIL}",
            "gold": ["Ann"],
            "predicted": [f"{name} says {EVIL}"],
        }
        for i, score in enumerate(scores)
    }
    mean = sum(scores) / len(scores)
    return {
        "dataset": dataset,
        "name": name,
        "em": mean,
        "n": len(scores),
        "intervals": {"em": [max(0.0, mean - 0.1), min(1.0, mean + 0.1)]},
        "notes": [EVIL],
        "questions": questions,
    }


def page(
    tmp_path: Path, *results: dict[str, Any], options: tuple[str, ...] = ()
) -> str:
    paths = []
    for i, one in enumerate(results):
        path = tmp_path / f"{i}.json"
        path.write_text(json.dumps(one), encoding="utf-8")
        paths.append(str(path))
    out = tmp_path / "page.html"
    done = CliRunner().invoke(
        report_command, [*paths, "--out", str(out), *options], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return out.read_text(encoding="utf-8")


class Balance(HTMLParser):
    """Fails on a tag that is closed without being open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_one_page_that_stands_alone(tmp_path: Path) -> None:
    html = page(
        tmp_path, result("one", [1, 0, 1, 0.0]), result(f"two {EVIL}", [1, 1, 0, 1.0])
    )
    assert "<script" not in html
    assert not re.search(r"(?:src|href)=|url\(|@import", html)
    assert "prefers-color-scheme" in html
    assert "viewport" in html
    parser = Balance()
    parser.feed(html)
    assert parser.open == []


def test_differences_side_by_side(tmp_path: Path) -> None:
    html = page(tmp_path, result("one", [1, 0, 1, 0.0]), result("two", [1, 1, 0, 1.0]))
    assert html.count("<article>") == 3
    assert "differ in em on 3 questions" in html
    assert "one says" in html
    assert "two says" in html
    few = page(
        tmp_path,
        result("one", [1, 0, 1, 0.0]),
        result("two", [1, 1, 0, 1.0]),
        options=("--differences", "1"),
    )
    assert few.count("<article>") == 1


def test_one_system_two_datasets_and_equal_names(tmp_path: Path) -> None:
    html = page(
        tmp_path,
        result("same", [1, 0.0]),
        result("same", [0, 1.0]),
        result("same", [1.0], dataset="asqa"),
    )
    assert "same (1)" in html
    assert "same (2)" in html
    assert "<h2>asqa</h2>" in html


def test_results_over_different_questions_are_said_to_be(tmp_path: Path) -> None:
    html = page(tmp_path, result("one", [1, 0.0]), result("two", [1.0]))
    assert "different questions" in html


def test_without_questions_there_are_still_tables(tmp_path: Path) -> None:
    html = page(tmp_path, {**result("one", [1, 0.0]), "questions": {}})
    assert "0.5000" in html


def test_a_score_by_a_reader_names_it(tmp_path: Path) -> None:
    base = {**result("one", [1, 0.0], dataset="asqa"), "disambig_f1": 0.25}
    html = page(
        tmp_path, {**base, "reader": "models/a"}, {**base, "reader": "models/b <own>"}
    )
    assert (
        "<td>disambig_f1 (reader: models/a) / disambig_f1 (reader: models/b &lt;own&gt;)</td>"
        in html
    )
    assert "<td>em</td>" in html


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "{}",
        '{"intervals": 5}',
        '{"intervals": {"em": 5}}',
        '{"intervals": {"em": ["x", 1]}}',
        '{"intervals": {}, "questions": []}',
        '{"intervals": {}, "questions": {"1": 5}}',
    ],
)
def test_a_file_that_is_no_result(tmp_path: Path, body: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(body, encoding="utf-8")
    with pytest.raises(BadInput, match="is not a result"):
        CliRunner().invoke(
            report_command,
            [str(path), "--out", str(tmp_path / "p.html")],
            catch_exceptions=False,
        )
