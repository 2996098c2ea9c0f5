"""JSON lines, tables, DPR's passages, Parquet: in every compression, and what can be wrong with single records."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from whichsense.corpus import Broken, Corpus, cut
from whichsense.corpus.feed import ReadingLimits
from whichsense.errors import BadInput
from whichsense.types import Document

ROWS = [
    {"id": 7, "title": "Paris", "text": "A city.\nBig."},
    {"title": "Zürich", "text": "Am See: “schön”."},
]


def test_json_lines_in_every_compression(packed, records):
    path = packed("some.jsonl", "\n".join(json.dumps(row) for row in ROWS).encode())
    assert records(path)[0] == [
        Document("7", "Paris", "A city.\nBig.", "some"),
        Document("@2", "Zürich", "Am See: “schön”.", "some"),
    ]


def test_keys_of_other_collections(jsonl, records):
    path = jsonl(
        [
            {"_id": "b1", "title": "T", "text": "beir"},
            {"id": "p1", "contents": '"Title"\npyserini'},
            {"id": "c1", "contents": "no title"},
            {"title": "T", "text": "x", "source": ["one", "two"], "section": "History"},
            {"title": None, "text": "untitled", "source": "own"},
        ]
    )
    found, report = records(path)
    assert [(d.id, d.title, d.text, d.source, d.sections) for d in found] == [
        ("b1", "T", "beir", "some", ()),
        ("p1", "Title", "pyserini", "some", ()),
        ("c1", "", "no title", "some", ()),
        ("@4", "T", "x", "one,two", ((0, "History"),)),
        ("@5", "", "untitled", "own", ()),
    ]
    assert report.documents == 5 and not report.broken


def test_broken_lines_are_skipped_counted_and_named(jsonl, records):
    limits = ReadingLimits(line=60_000)
    bad = {
        2: (b"{not json", "not valid JSON"),
        3: (b'{"title": "no text"}', "no text"),
        4: (b'{"title": "x", "text": "\xff\xfe"}', "not utf-8"),
        5: (b"[1, 2]", "not a JSON object"),
        6: (b'{"text": ["a"]}', "not a string"),
        7: (b'{"text": "  "}', "empty"),
        8: (b'{"text": "half \\ud83d"}', "surrogate"),
        9: (b"[" * 50_000, "not valid JSON"),
        10: (b'{"text": "a", "n": ' + b"1" * 5_000 + b"}", "not valid JSON"),
        11: (b'{"text": "' + b"x" * 70_000 + b'"}', "long"),
        12: (b'{"text": "a", "title": 5}', "title is not a string"),
    }
    path = jsonl(
        [{"text": "good"}, *(line for line, _ in bad.values()), b"", {"text": "smile \U0001f600"}]
    )
    found, report = records(path, limits=limits)
    assert [document.text for document in found] == ["good", "smile \U0001f600"]
    assert report.broken == len(bad) and len(report.named) == len(bad)
    for broken, (number, (_, why)) in zip(report.named, bad.items(), strict=True):
        assert (
            broken.where == f"line {number}"
            and why in broken.why
            and broken.file.endswith("some.jsonl")
        )


def test_byte_order_mark_and_blank_lines(tmp_path, records):
    path = tmp_path / "bom.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "one"}\r\n\r\n   \n{"text": "two"}')
    assert [document.text for document in records(path)[0]] == ["one", "two"]


def test_wikiextractor_folder(jsonl, tmp_path, records):
    row = {
        "id": "12",
        "revid": "5",
        "url": "https://x",
        "title": "Anarchism",
        "text": "Anarchism is…",
    }
    jsonl([row], "tree/AA/wiki_00")
    jsonl([{**row, "id": "25", "title": "Autism"}], "tree/AB/wiki_00")
    jsonl([{**row, "id": "26", "title": "Art"}], "tree/AB/wiki_01")
    found, _ = records(tmp_path / "tree")
    assert [document.id for document in found] == ["AA/wiki_00:12", "AB/wiki_00:25", "wiki_01:26"]
    assert found[0].source == "AA/wiki_00"


def test_wikiextractor_without_json_says_what_to_run(tmp_path, records):
    path = tmp_path / "wiki_00"
    path.write_text('<doc id="12" url="" title="Anarchism">\nAnarchism\n</doc>\n')
    with pytest.raises(BadInput, match="--json"):
        records(path)


def test_json_list_says_what_to_run(tmp_path, records):
    path = tmp_path / "all.json"
    path.write_text('[\n{"text": "a"}\n]')
    with pytest.raises(BadInput, match="jq"):
        records(path, format="jsonl")


DPR = (
    "id\ttext\ttitle\n"
    '1\t"Aaron ""the"" prophet\'s tale"\tAaron\n'
    '2\tplain text\t"""Weird Al"" Yankovic"\n'
    "3\tonly two columns\n"
    "4\t\tEmpty\n"
)


def test_dpr_passages_are_kept_whole(packed, records):
    found, report = records(packed("psgs_w100.tsv", DPR.encode()))
    assert [(d.id, d.title, d.text, d.whole) for d in found] == [
        ("1", "Aaron", 'Aaron "the" prophet\'s tale', True),
        ("2", '"Weird Al" Yankovic', "plain text", True),
    ]
    assert [broken.where for broken in report.named] == ["line 4", "line 5"]
    (passage,) = cut(found[0], words=2)
    assert (passage.id, passage.text, passage.start, passage.end) == (
        "1",
        found[0].text,
        0,
        len(found[0].text),
    )


def test_dpr_agrees_with_the_csv_module(tmp_path, records):
    texts = ['say "hi"', "tab-free", '"all quoted"', "it's", '""', "“curly”"]
    body = io.StringIO()
    writer = csv.writer(body, delimiter="\t", lineterminator="\n")
    writer.writerow(["id", "text", "title"])
    writer.writerows([n, text, text[::-1]] for n, text in enumerate(texts))
    path = tmp_path / "p.tsv"
    path.write_text(body.getvalue())
    found, _ = records(path)
    assert [(d.text, d.title) for d in found] == [(text, text[::-1]) for text in texts]


def test_csv_in_every_compression(packed, records):
    path = packed(
        "some.csv", '\ufeffTitle,ID,Text\r\nA,9,"two\r\nlines, ""quoted"""\r\nB,,x\r\n'.encode()
    )
    assert records(path)[0] == [
        Document("9", "A", 'two\r\nlines, "quoted"', "some"),
        Document("@2", "B", "x", "some"),
    ]


def test_tsv_and_semicolons(tmp_path, records):
    (tmp_path / "a.tsv").write_text("title\tcontent\nA\tone\n")
    (tmp_path / "b.csv").write_text("title;text\nB;two, three\n")
    assert [(d.id, d.text) for d in records(tmp_path)[0]] == [
        ("a:@1", "one"),
        ("b:@1", "two, three"),
    ]


def test_csv_without_a_text_column_lists_its_columns(tmp_path, records):
    path = tmp_path / "some.csv"
    path.write_text("name,price\nA,1\n")
    with pytest.raises(BadInput, match=r"no column 'text'.*'name', 'price'"):
        records(path)


def test_broken_rows(tmp_path, records):
    limits = ReadingLimits(line=100)
    path = tmp_path / "some.csv"
    path.write_bytes(
        b"title,text\nA,one\nB,\nC,\xff\nD,"
        + b"x" * 200
        + b"\nE,two\n"
        + b'F,"open\n'
        + b"y" * 90
        + b"\n" * 3
    )
    found, report = records(path, limits=limits)
    assert [document.text for document in found][:2] == ["one", "two"]
    assert [b.where for b in report.named[:3]] == ["line 3", "line 4", "line 5"]
    assert (
        "no text" in report.named[0].why
        and "utf-8" in report.named[1].why
        and "long" in report.named[2].why
    )


def test_other_encoding_on_request(tmp_path, records):
    path = tmp_path / "some.csv"
    path.write_bytes("title,text\nZürich,schön\n".encode("cp1252"))
    with pytest.raises(BadInput, match="nothing usable"):
        records(path)
    assert records(path, encoding="cp1252")[0][0].text == "schön"
    path = tmp_path / "psgs.tsv"
    path.write_bytes("id\ttext\ttitle\n1\tschön\tZürich\n".encode("cp1252"))
    with pytest.raises(BadInput, match=r"nothing usable.*--encoding"):
        records(path)
    assert records(path, encoding="cp1252")[0][0].title == "Zürich"
    with pytest.raises(BadInput, match="No encoding named 'klingon'"):
        Corpus(path, encoding="klingon")


def parquet(path: Path, rows: int = 10, group: int = 4) -> Path:
    columns = {
        "Title": [f"t{n}" for n in range(rows)],
        "id": list(range(100, 100 + rows)),
        "other": [[n] for n in range(rows)],
        "text": [None if n == 3 else f"text {n}" for n in range(rows)],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=group)
    return path


def test_parquet(tmp_path, records):
    found, report = records(parquet(tmp_path / "some.parquet"))
    assert [document.text for document in found] == [f"text {n}" for n in range(10) if n != 3]
    assert found[0] == Document("100", "t0", "text 0", "some")
    assert report.named == [
        Broken(str(tmp_path / "some.parquet"), "row 4", "no text in the text column.")
    ]


@pytest.mark.parametrize("skip", range(11))
def test_parquet_resumes(tmp_path, records, skip):
    path = parquet(tmp_path / "some.parquet")
    steps = [f"text {n}" for n in range(10)]
    assert [document.text for document in records(path, skip)[0]] == [
        text for text in steps[skip:] if text != "text 3"
    ]


def test_parquet_with_bytes_that_are_not_text(tmp_path, records):
    bad = pyarrow.Array.from_buffers(
        pyarrow.string(),
        2,
        [None, pyarrow.py_buffer(b"\0\0\0\0\2\0\0\0\4\0\0\0"), pyarrow.py_buffer(b"ok\xff\xfe")],
    )
    pyarrow.parquet.write_table(pyarrow.table({"text": bad}), tmp_path / "some.parquet")
    found, report = records(tmp_path / "some.parquet")
    assert [document.text for document in found] == ["ok"] and "UTF-8" in report.named[0].why


def test_csv_that_cannot_be_read_is_told(tmp_path, records):
    path = tmp_path / "some.csv"
    path.write_bytes(b"id,text\r1,hello world\r2,foo bar\r")
    with pytest.raises(BadInput, match=r"some\.csv' has no header.*LF"):
        records(path)
    for encoding in ("utf-16", "utf-16-le", "utf-32", "cp037"):
        with pytest.raises(BadInput, match="Save it as UTF-8"):
            records(path, encoding=encoding)
    with pytest.raises(BadInput, match="No encoding named"):
        Corpus(path, encoding="undefined")


def test_a_quote_left_open_names_its_line(tmp_path, records):
    path = tmp_path / "some.csv"
    path.write_text('id,text\n1,first\n\n2,"two\nlines"\n3,"unclosed\n4,lost\n5,lost\n')
    found, report = records(path)
    assert [document.id for document in found] == ["1", "2"]
    assert [(b.where, b.why[:17]) for b in report.named] == [("line 6", "a quote is opened")]
    path.write_text('id,text\n1,first\n2,"closed"')
    assert [document.text for document in records(path)[0]] == ["first", "closed"]


def test_a_header_in_another_encoding_breaks_no_row(tmp_path, records):
    path = tmp_path / "some.csv"
    path.write_bytes(b"id,text,caf\xe9\n1,first,x\n2,second,y\n")
    found, report = records(path)
    assert [document.text for document in found] == ["first", "second"] and not report.broken
