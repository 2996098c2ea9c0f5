"""Folders of documents: text, Markdown, HTML, PDF, Word, and what may lie among them."""

from __future__ import annotations

import io
import os
import zipfile

import docx
import pypdf
import pytest

from whichsense.corpus import Broken, Corpus, Report
from whichsense.corpus.documents import page_of
from whichsense.corpus.feed import ReadingLimits
from whichsense.errors import BadInput, MissingExtra


def pdf(*pages: str, title: str = "") -> bytes:
    """The smallest PDF with these pages of text."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append(f"<< /Title ({title}) >>")
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size, info = len(objects) + 1, len(objects)
    trailer = (
        f"trailer << /Size {size} /Root 1 0 R /Info {info} 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    )
    return body + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def word(path, title=""):
    document = docx.Document()
    document.core_properties.title = title
    document.add_heading("Birds", 1)
    document.add_paragraph("They fly.")
    document.add_heading("Penguins", 2)
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "swim", "yes"
    document.add_paragraph("The end.")
    document.save(path)
    return path


MARKDOWN = """---
title: "The guide"
---
# Setup *now*
Run `pip` and see [the docs](http://x).
Second line.

## Details
- one
- two

```python
print("kept")
```

| a | b |
|---|---|
| 1 | 2 |

<div>raw <b>html</b></div>
"""


def test_a_folder_of_documents(tmp_path, records):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("Plain\n  text.\n")
    (tmp_path / "sub" / "guide.md").write_text(MARKDOWN)
    (tmp_path / "page.html").write_text(
        "<title>A page</title><h1>Head</h1><p>One.</p><script>no()</script>"
    )
    (tmp_path / "paper.pdf").write_bytes(pdf("Hello world", "Second page", title="A paper"))
    word(tmp_path / "birds.docx")
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\0")
    (tmp_path / "Makefile").write_text("all:\n")
    (tmp_path / "package.json").write_text('{\n "name": "x"\n}\n')
    (tmp_path / ".hidden.txt").write_text("no")
    (tmp_path / "rows.jsonl").write_text('{"id": 5, "text": "a row"}\n')
    found, report = records(tmp_path)
    assert [(d.id, d.title) for d in found] == [
        ("a.txt", "a"),
        ("birds.docx", "Birds"),
        ("page.html", "A page"),
        ("paper.pdf", "A paper"),
        ("rows:5", ""),
        ("sub/guide.md", "The guide"),
    ]
    text = {document.id: document for document in found}
    assert text["a.txt"].text == "Plain\n  text.\n"
    assert text["paper.pdf"].text == "Hello world\nSecond page"
    assert text["paper.pdf"].sections == ((0, "page 1"), (12, "page 2"))
    assert text["birds.docx"].text == "Birds\nThey fly.\nPenguins\nswim | yes\nThe end."
    assert text["birds.docx"].sections == ((0, "Birds"), (16, "Birds > Penguins"))
    guide = text["sub/guide.md"]
    assert guide.text == (
        'Setup now\nRun pip and see the docs. Second line.\nDetails\none\ntwo\nprint("kept")\na\nb\n1\n2\nraw html'
    )
    assert [name for _, name in guide.sections] == ["Setup now", "Setup now > Details"]
    assert report.passed_over == 3 and not report.broken


@pytest.mark.parametrize("name", ["note.txt", "note.md", "note.html", "note.htm"])
def test_single_files_packed(packed, records, name):
    (document,) = records(packed(name, b"<p>Some words.</p>"))[0]
    assert (
        "Some words." in document.text and document.title == "note" and document.id.startswith(name)
    )


def test_indexes_in_a_folder_are_passed_over(tmp_path, records):
    (tmp_path / "a.txt").write_text("words")
    served, begun, other = (tmp_path / "idx", tmp_path / "deep" / "new", tmp_path / "other")
    (served / "generation-1" / "lexical").mkdir(parents=True)
    (begun / "staging" / "content").mkdir(parents=True)
    (other / "generation-x").mkdir(parents=True)
    for path in (
        served / "manifest.json",
        served / "generation-1" / "x.jsonl",
        begun / "writer.lock",
    ):
        path.write_text('{"text": "not a corpus"}\n')
    for path in (begun / "staging" / "state.json", other / "generation-x" / "b.txt"):
        path.write_text('{"text": "not a corpus"}\n')
    found, report = records(tmp_path)
    assert [document.id for document in found] == ["a.txt", "other/generation-x/b.txt"]
    assert report.passed_over == 2
    assert "2 of a kind that is not read" in report.summary()
    with pytest.raises(BadInput, match="is an index"):
        records(served)


def test_a_text_of_an_unknown_suffix(tmp_path, records):
    path = tmp_path / "notes.rst"
    path.write_text("Some words.")
    assert records(path)[0][0].text == "Some words."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_that_tell_themselves(tmp_path, records, encoding):
    path = tmp_path / "a.txt"
    path.write_bytes("Zürich – “x”".encode(encoding))
    assert records(path)[0][0].text == "Zürich – “x”"


def test_an_encoding_is_not_guessed(tmp_path, records):
    (tmp_path / "old.txt").write_bytes("Zürich".encode("cp1252"))
    (tmp_path / "new.txt").write_text("Zürich")
    found, report = records(tmp_path)
    assert [document.id for document in found] == ["new.txt"]
    assert report.named[0].file == "old.txt" and "--encoding cp1252" in report.named[0].why
    assert records(tmp_path / "old.txt", encoding="cp1252")[0][0].text == "Zürich"
    with pytest.raises(BadInput, match="not cp1252"):
        (tmp_path / "x.txt").write_bytes(b"\x81")
        records(tmp_path / "x.txt", encoding="cp1252")


def test_html_says_its_encoding(tmp_path, records):
    path = tmp_path / "a.html"
    path.write_bytes('<meta charset="windows-1252"><p>Zürich</p>'.encode("cp1252"))
    assert records(path)[0][0].text == "Zürich"
    path.write_bytes('<meta charset="klingon"><p>Zürich</p>'.encode("cp1252"))
    with pytest.raises(BadInput, match="unknown encoding"):
        records(path)


def test_html_is_what_a_reader_reads():
    title, page = page_of(
        "<html><head><title>My  page</title><style>x</style></head><body><nav>menu</nav>intro <b>bold</b>ly"
        "<h1>A</h1><p>one<br>two<p>three<div>x<div>y</div>z</div><h2>B <i>c</i></h2><!-- no -->"
        "<table><tr><th>a<td>b</tr><tr><td>c</td><td>d</td></tr></table><ul><li>i<li>j</ul>tail &amp; end</body></html>"
    )
    assert title == "My  page"
    assert page.text == "intro boldly\nA\none\ntwo\nthree\nx\ny\nz\nB c\na b\nc d\ni\nj\ntail & end"
    assert [name for _, name in page.sections] == ["A", "A > B c"]


def test_html_nested_to_break_parsers():
    assert page_of("<div>" * 100_000 + "x &amp; y<script>no</script>")[1].text == "x & y"


def test_broken_documents_are_named_and_the_rest_is_read(tmp_path, records, monkeypatch):
    (tmp_path / "good.txt").write_text("Good.")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "binary.txt").write_bytes(b"a\0b")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing")
    (tmp_path / "scan.pdf").write_bytes(pdf(""))
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("secret")))
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(tmp_path / "locked.pdf")
    (tmp_path / "not.docx").write_bytes(b"hello")
    with zipfile.ZipFile(tmp_path / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"0" * 2_000_000)
    (tmp_path / "cut.jsonl.gz").write_bytes(b"\x1f\x8b\x08\0")
    (tmp_path / "long.txt").write_text("x" * 3_000_000)
    limits = ReadingLimits(document=2_500_000, zip_floor=1_000_000)
    found, report = records(tmp_path, limits=limits)
    assert [document.id for document in found] == ["good.txt"]
    why = {broken.file: broken.why for broken in report.named}
    expected = {
        "empty.txt": "empty",
        "binary.txt": "binary",
        "broken.pdf": "cannot be read as pdf",
        "scan.pdf": "OCR",
        "locked.pdf": "encrypted",
        "not.docx": "not a Word file",
        "bomb.docx": "refused",
        "cut.jsonl.gz": "cut short",
        "long.txt": "Split it",
    }
    assert why.keys() == expected.keys() and all(expected[name] in why[name] for name in why)
    with pytest.raises(BadInput, match="encrypted"):
        records(tmp_path / "locked.pdf")
    for skip in range(11):
        rest = records(tmp_path, skip, limits=limits)[1] if skip else report
        assert rest.broken + rest.documents == 10 - skip or skip > 10


def test_a_folder_with_nothing_readable(tmp_path, records):
    with pytest.raises(BadInput, match="holds no file that can be read"):
        records(tmp_path)
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\0")
    with pytest.raises(BadInput, match="holds no file that can be read"):
        records(tmp_path)
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "b.txt").write_text("  ")
    with pytest.raises(BadInput, match=r"Nothing in .* could be used: 2 broken"):
        records(tmp_path)


def test_links_out_of_the_folder_are_not_followed(tmp_path, records):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("inside")
    os.symlink(tmp_path / "outside" / "secret.txt", folder / "file.txt")
    os.symlink(tmp_path / "outside", folder / "dir")
    os.symlink(folder / "a.txt", folder / "same.txt")
    os.symlink(folder, folder / "loop")
    os.symlink(folder / "gone", folder / "nowhere.txt")
    os.mkfifo(folder / "pipe.txt")
    found, report = records(folder)
    assert [document.text for document in found] == ["inside"]
    assert [(b.file, b.why.split(":")[0]) for b in report.named] == [
        ("dir", "path outside the folder"),
        ("file.txt", "path outside the folder"),
        ("nowhere.txt", "the link leads nowhere."),
    ]
    assert [path.name for path in Corpus(folder).find_files()] == ["a.txt"]
    with pytest.raises(BadInput, match="neither a file nor a folder"):
        records(folder / "pipe.txt")


def test_ids_of_documents_from_several_folders(tmp_path, records):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    found, _ = records([tmp_path / "one", tmp_path / "two"])
    assert [document.id for document in found] == ["one/a.txt", "two/a.txt"]


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("a.pdf", "pypdf"),
        ("a.docx", "docx"),
        ("a.md", "markdown_it"),
        ("a.html", "selectolax"),
        ("a.parquet", "pyarrow"),
    ],
)
def test_a_missing_extra_is_told_before_anything_is_read(
    tmp_path, records, monkeypatch, name, module
):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    for loaded in [key for key in __import__("sys").modules if key.startswith(f"{module}.")]:
        monkeypatch.setitem(__import__("sys").modules, loaded, None)
    (tmp_path / "0.txt").write_text("first")
    (tmp_path / name).write_text("x")
    with pytest.raises(MissingExtra, match=r"pip install 'whichsense\[documents\]'"):
        records(tmp_path)


def test_half_characters_of_a_pdf(tmp_path, records, monkeypatch):
    monkeypatch.setattr(pypdf.PageObject, "extract_text", lambda self: "half \ud83d\0 done")
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf("x"))
    assert records(path)[0][0].text == "half ? done"


def test_broken_reads_as_a_sentence():
    assert str(Broken("a.txt", "", "is empty.")) == "a.txt: is empty."


def test_scripts_and_their_addresses_are_not_text(tmp_path):
    guide = (
        "# Guide\n\n[Read on](javascript:alert(1)) <script>alert(2)</script> here.\n\n"
        "<script>\nalert(3)\n\nalert(4)\n</script>\n\n<style>p { color: red }</style>\n\nThe end.\n"
    )
    (tmp_path / "guide.md").write_text(guide)
    (document,) = Corpus(tmp_path / "guide.md").records(Report())
    assert "Read on" in document.text and "The end." in document.text
    for dropped in ("javascript", "alert", "color"):
        assert dropped not in document.text
