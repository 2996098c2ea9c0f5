"""The corpus as a whole: several files, names and ids, where a resumed reading goes on, what the report says."""

from __future__ import annotations

import json
import os
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whichsense.corpus import Broken, Corpus, Report
from whichsense.corpus.feed import NAMED
from whichsense.errors import BadInput


def test_making_one_touches_no_file():
    corpus = Corpus("nowhere/at/all.jsonl")
    with pytest.raises(BadInput, match="no file or folder"):
        corpus.find_files()


def test_several_sources_in_the_order_given(jsonl, records):
    first = jsonl([{"id": 1, "text": "a"}], "b.jsonl")
    second = jsonl([{"id": 1, "text": "b"}], "a.jsonl")
    found, _ = records([first, second])
    assert [(document.id, document.source) for document in found] == [("b:1", "b"), ("a:1", "a")]


def test_names_that_collide_become_longer(jsonl, tmp_path, records):
    jsonl([{"id": 1, "text": "a"}], "x/part.jsonl")
    jsonl([{"id": 1, "text": "b"}], "y/part.jsonl")
    found, _ = records([tmp_path / "x", tmp_path / "y"])
    assert [document.id for document in found] == ["x/part.jsonl:1", "y/part.jsonl:1"]
    twice, _ = records([tmp_path / "x", tmp_path / "x"])
    assert len({document.id for document in twice}) == 2


def test_prefix_on_request(jsonl, records):
    path = jsonl([{"id": 1, "text": "a"}])
    assert records(path)[0][0].id == "1"
    assert records(path, prefix=True)[0][0].id == "some:1"


def test_unknown_format_helps():
    with pytest.raises(BadInput, match=r"No format named 'jsnol'\. Did you mean 'jsonl'\?"):
        Corpus("x", format="jsnol")


def test_format_overrides_the_name(tmp_path, records):
    path = tmp_path / "data.txt"
    path.write_text('{"text": "a record"}\n')
    assert records(path)[0][0].text == '{"text": "a record"}\n'
    assert records(path, format="jsonl")[0][0].text == "a record"


def test_no_source():
    with pytest.raises(BadInput, match="No source given"):
        Corpus([])


def test_fingerprint_changes_with_the_files(jsonl, tmp_path):
    path = jsonl([{"text": "a"}])
    first = Corpus(path).fingerprint
    assert Corpus(path).fingerprint == first
    assert Corpus(path, encoding="latin-1").fingerprint != first
    os.utime(path, ns=(1, 1))
    assert Corpus(path).fingerprint != first


def test_done_and_position_move_together(jsonl, tmp_path):
    jsonl([{"text": "a" * 300_000}, {"text": "b"}], "one.jsonl")
    jsonl([{"text": "c"}], "two.jsonl")
    corpus, seen = Corpus(tmp_path), []
    for _ in corpus.records(Report()):
        seen.append((corpus.position, corpus.done))
    assert [position for position, _ in seen] == [1, 2, 3]
    assert [done for _, done in seen] == sorted(done for _, done in seen)
    assert seen[-1][1] == 0.999 and corpus.done == 1.0


class Stop(Exception):
    pass


@pytest.mark.parametrize("skip", [0, 2500])
def test_runs_of_broken_and_skipped_records_can_be_stopped(jsonl, skip):
    rows = [b"broken"] * 2_500 + [{"text": "good"}]
    corpus, report, seen = Corpus(jsonl(rows)), Report(), []
    found = list(
        corpus.records(report, skip, lambda: seen.append((corpus.position, report.broken)))
    )
    assert len(found) == 1 and seen == ([(2500, 0)] * 2 if skip else [(1000, 1000), (2000, 2000)])

    def stop() -> None:
        raise Stop

    first = Report()
    with pytest.raises(Stop):
        list(corpus.records(first, idle=stop))
    assert (corpus.position, first.broken) == (1000, 1000)
    assert len(list(corpus.records(first, skip=corpus.position))) == 1 and first.broken == 2500


def test_a_summary_steers_no_terminal():
    report = Report()
    report.add_broken(Broken("\x1b[31m\nred\x07.txt", "line 1", "bad\x9b"))
    assert report.summary().splitlines()[2] == "  [31mred.txt, line 1: bad"


ROW = st.one_of(
    st.sampled_from([b"{bad", b'{"title": 1}', b"", b"   ", b"\xff\xfe"]),
    st.text(max_size=5).map(lambda text: json.dumps({"text": text}).encode()),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.lists(ROW, max_size=8), min_size=1, max_size=3), st.integers(0, 25))
def test_a_stopped_reading_goes_on_where_it_stopped(tmp_path_factory, parts, stop):
    folder = tmp_path_factory.mktemp("parts")
    for number, rows in enumerate(parts):
        (folder / f"{number}.jsonl").write_bytes(b"\n".join([b'{"text": "first"}', *rows]))
    (folder / "note.txt").write_text("a note among the data")
    whole = Report()
    everything = list(Corpus(folder).records(whole))
    corpus, report = Corpus(folder), Report()
    begun = list(islice(corpus.records(report), stop))
    saved = json.loads(json.dumps(report.as_dict()))
    rest_report = Report.from_dict(saved)
    rest = list(Corpus(folder).records(rest_report, skip=corpus.position))
    assert begun + rest == everything
    assert rest_report == whole


def test_report_names_the_first_and_counts_all():
    report = Report(documents=1, passages=2, duplicates=1, passed_over=2, senses=1, rough=1)
    for number in range(150):
        report.add_broken(Broken("f", f"line {number}", "bad"))
    assert report.broken == 150 and len(report.named) == NAMED
    assert Report.from_dict(json.loads(json.dumps(report.as_dict()))) == report
    assert report.summary(examples=1).splitlines() == [
        "1 document, 2 passages, 1 sense",
        "left out: 150 broken records, 1 duplicate, 2 of a kind that is not read",
        "  f, line 0: bad",
        "  … and 149 more",
        "markup too tangled for the parser, stripped roughly: 1 page",
    ]
