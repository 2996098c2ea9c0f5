"""Input that was made to break things: a clear error or a correct reading, never a traceback."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import time
import tracemalloc
import zipfile

import docx
import pypdf
import pytest
import zstandard

from whichsense.corpus import cut
from whichsense.corpus.feed import ReadingLimits
from whichsense.errors import BadInput, WhichsenseError

GOOD = b'{"title": "t", "text": "some words"}\n' * 5_000


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.csv", "a.tsv", "a.xml", "a.txt", "a.pdf", "a.docx", "a.parquet", "a"]
)
@pytest.mark.parametrize(
    "body", [b"", b"\0" * 5000, bytes(range(256)) * 40, b"\x89PNG\r\n\x1a\n\0\0", b"\xff" * 5000]
)
def test_empty_and_binary_files(tmp_path, records, name, body):
    path = tmp_path / name
    path.write_bytes(body)
    with pytest.raises(BadInput, match=name):
        records(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("body", [b"", b"garbage, not packed at all"])
def test_packed_files_that_are_not(tmp_path, records, suffix, body):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(body)
    with pytest.raises(BadInput, match=r"a\.jsonl"):
        records(path)


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.compress),
    ],
)
@pytest.mark.parametrize("kept", [0.3, 0.6, -1])
def test_packed_files_cut_short(tmp_path, records, suffix, pack, kept):
    body = pack(os.urandom(1000).hex().encode().join([GOOD, GOOD]))
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(body[: int(len(body) * kept) if kept > 0 else kept])
    with pytest.raises(BadInput, match=r"cut short.*Fetch or pack it again"):
        records(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_bombs(tmp_path, records, suffix):
    pack = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.compress,
    }[suffix]
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(pack(b" " * 2**25))
    with pytest.raises(BadInput, match="refused"):
        records(path, limits=ReadingLimits(bomb_floor=2**22))


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.csv", "a.tsv", "a.xml", "psgs.tsv", "a.txt", "a.md", "a.html"]
)
def test_a_line_of_200_mb(tmp_path, records, name):
    """The file is sparse; what is measured is that it is never held in memory."""
    head = {
        "a.xml": b"<mediawiki>",
        "a.csv": b"text\n",
        "a.tsv": b"text\n",
        "psgs.tsv": b"id\ttext\ttitle\n",
    }
    path = tmp_path / name
    with open(path, "wb") as file:
        file.write(head.get(name, b"x" * 5_000))
        if name != "a.xml":
            file.write(b"x" * 5_000)
        file.truncate(200 * 2**20)
    tracemalloc.start()
    with pytest.raises(WhichsenseError, match=name):
        records(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500 * 2**20


def test_a_long_line_among_good_ones(tmp_path, records):
    path = tmp_path / "a.jsonl"
    with open(path, "wb") as file:
        file.write(b'{"text": "first"}\n{"text": "' + b"x" * 5_000)
        file.seek(200 * 2**20, os.SEEK_CUR)
        file.write(b'"}\n{"text": "last"}\n')
    found, report = records(path)
    assert [document.text for document in found] == ["first", "last"]
    assert report.broken == 1 and "32 MB" in report.named[0].why


def test_other_people_s_files(tmp_path, records, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD)
    real = open

    def refuse(name, *args, **options):
        if str(name) == str(path):
            raise PermissionError(13, "Permission denied")
        return real(name, *args, **options)

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(BadInput, match="Permission denied"):
        records(path)


@pytest.mark.parametrize(
    "source",
    ["", "no/such/file.jsonl", pytest.param("a\0b", id="nul"), pytest.param("x" * 5000, id="long")],
)
def test_paths_that_are_none(tmp_path, records, source, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput):
        records(source)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.html", "<p>words</p>" + "<script>" * 200_000),
        ("a.html", "<p>words</p><" + "a" * 200_000),
        ("a.md", "---" + "\n" * 200_000 + "words"),
        ("a.md", "---\ntitle: a" + " " * 200_000 + "b\n---\nwords"),
        ("a.txt", "words" + "." * 200_000 + "x"),
        ("a.txt", "words." + '"' * 200_000 + " " * 200_000 + "x"),
    ],
    ids=["scripts", "tag", "front", "title", "dots", "quotes"],
)
def test_text_made_for_slow_patterns(tmp_path, records, name, body):
    path = tmp_path / name
    path.write_text(body)
    begun = time.process_time()
    (document,) = records(path)[0]
    assert "words" in next(cut(document, sentences=True)).text
    assert time.process_time() - begun < 5


def test_front_matter_of_every_form(tmp_path, records):
    path = tmp_path / "a.md"
    for front, title in [
        ("---\nTitle: 'A b'  \nx: 1\n---\n", "A b"),
        ("---\r\ntitle: A\r\n...\r\n", "A"),
        ("---\nx:\n  title: no\n---\n", "a"),
        ("---\n---\n", "a"),
    ]:
        path.write_text(f"{front}Some words.", newline="")
        (document,) = records(path)[0]
        assert (document.title, document.text) == (title, "Some words.")


def test_a_cell_that_claims_to_span_a_million_columns(tmp_path, records):
    document = docx.Document()
    table = document.add_table(2, 3)
    for place, text in enumerate(("one", "", "three")):
        table.cell(0, place).text = text
    table.cell(0, 0)._tc.grid_span = 200_000_000
    document.save(tmp_path / "a.docx")
    assert records(tmp_path / "a.docx")[0][0].text == "one | | three\n| |"


def test_a_page_listed_again_and_again(tmp_path, records):
    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(9, 9)
    kids = writer.root_object["/Pages"]["/Kids"]
    kids.extend([page.indirect_reference] * 20_000)
    writer.write(tmp_path / "a.pdf")
    with pytest.raises(BadInput, match=r"a\.pdf' lists one page over 10 times: refused"):
        records(tmp_path / "a.pdf")


def test_a_pdf_without_end(tmp_path, records):
    writer = pypdf.PdfWriter()
    writer.add_blank_page(9, 9)
    writer.write(tmp_path / "a.pdf")
    with pytest.raises(BadInput, match="too long to read"):
        records(tmp_path / "a.pdf", limits=ReadingLimits(pdf_seconds=-1))


@pytest.mark.parametrize("name", ["all.json", "all", "all.dat"])
@pytest.mark.parametrize(
    ("body", "program"),
    [
        ('[{"title": "A", "text": "one"},\n {"title": "B", "text": "two"}]', "jq -c '.[]' all"),
        ('\ufeff[\n{"title": "A", "text": "one"}\n]', "jq -c '.[]' all"),
        ('{\n  "title": "A",\n  "text": "one"\n}\n', "jq -c . all"),
        ('{"title": "A",\n"text": "one"}', "jq -c . all"),
    ],
)
def test_json_that_is_not_on_lines_is_no_text(tmp_path, records, name, body, program):
    path = tmp_path / name
    path.write_text(body)
    with pytest.raises(BadInput, match=r"not JSON lines\. Run: ") as error:
        records(path)
    assert program in str(error.value) and str(error.value).endswith(" > all.jsonl")
    if name != "all.dat":
        (tmp_path / "good.txt").write_text("words")
        (tmp_path / "settings.json").write_text('{\n "name": "x"\n}\n')
        found, report = records(tmp_path)
        assert [document.id for document in found] == ["good.txt"] and report.passed_over == 1
        assert report.broken == 1 and program in report.named[0].why


def test_the_command_never_overwrites_its_source(tmp_path, records):
    path = tmp_path / "all.jsonl"
    path.write_text('[{"text": "one"}]')
    with pytest.raises(BadInput, match=r"all\.jsonl > all-lines\.jsonl$"):
        records(path)


def test_text_that_begins_with_a_bracket(tmp_path, records):
    path = tmp_path / "notes.rst"
    for body in ("[1] A note.", "{braces} in front", "[sic] {a}"):
        path.write_text(body)
        assert records(path)[0][0].text == body
    (tmp_path / "one.json").write_text('{"id": 3, "text": "a record"}')
    assert records(tmp_path / "one.json")[0][0].id == "3"


@pytest.mark.parametrize("name", ["a.zip", "a.epub", "a.docx", "a", "a.tgz", "a.tar.gz"])
def test_archives_are_to_be_unpacked(tmp_path, records, name):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("a.txt", "words")
    with pytest.raises(BadInput, match=r"archive.*Unpack it and give the folder"):
        records(tmp_path / name)


def test_names_that_are_not_utf8(tmp_path, records):
    folder = os.fsencode(tmp_path / "folder")
    os.mkdir(folder)
    for name in (b"caf\xe9.txt", b"caf\xe8.txt", b"\xff.jsonl", b"\xfe.md"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"" if name.endswith(b".md") else b'{"text": "words"}')
    found, report = records(os.fsdecode(folder))
    assert len({document.id for document in found}) == 3
    names = [name for d in found for name in (d.id, d.title, d.source)] + [
        report.named[0].file,
        report.summary(),
    ]
    assert all("?" in name for name in names if name) and "".join(names).encode()
    with pytest.raises(BadInput) as error:
        records(os.fsdecode(os.path.join(folder, b"\xfe.md")))
    assert str(error.value).encode()


def test_ids_and_titles_stand_on_one_line_and_within_reason(jsonl, records):
    path = jsonl(
        [
            {
                "id": " a\n b ",
                "title": "x " * 1000,
                "section": "y" * 2000,
                "source": "s\nt",
                "text": "one",
            },
            {"id": "i" * 1001, "text": "two"},
            {"id": " \n", "text": "three"},
            {"id": "3", "text": "four"},
        ]
    )
    found, report = records(path)
    assert [document.id for document in found] == ["a b", "@3", "3"]
    assert len(found[0].title) == 1000 and found[0].title.endswith("…") and found[0].source == "s t"
    assert len(found[0].sections[0][1]) == 1000
    assert [(broken.where, broken.why[:21]) for broken in report.named] == [
        ("line 2", "the id is over 1,000 ")
    ]


def test_xml_without_a_bottom(tmp_path, records):
    path = tmp_path / "a.xml"
    path.write_text("<mediawiki>" + "<a>" * 100_000)
    with pytest.raises(BadInput, match="deeper than 50"):
        records(path)
