"""Wikipedia dumps: markup, sections, redirects, disambiguation pages, streams, and pages that break the parser."""

from __future__ import annotations

import bz2
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patience import LONGEST
from whichsense.corpus import Corpus, Report, wikipedia
from whichsense.corpus.feed import ReadingLimits
from whichsense.corpus.wikipedia import PageStripper, is_disambiguation, senses
from whichsense.errors import BadInput, WhichsenseError
from whichsense.jobs.workers import Workers
from whichsense.types import Document, Redirect, Sense

ARTICLE = """{{Short description|Planet}}
{{Infobox planet
| name = Mercury | mass = {{val|3.3}} kg
| image = [[File:M.jpg|thumb]]
}}
<!-- a comment
over lines -->
'''Mercury''' ({{IPAc-en|m}}; {{lang|la|Mercurius}}) is the [[planet]] closest to the [[Sun#A|Sun]].<ref name=a>{{cite
|url=http://x.org|title=T}}</ref><ref name="b" /> It is {{convert|4880|km|mi|abbr=on}} wide&nbsp;&ndash; ''small''.
[[File:Mercury.jpg|thumb|left|A [[caption]] with ''links'']]
{| class="wikitable"
! Year !! Radius
|-
| 1800 ||
{| class="inner"
| x || {{a|}}
|}
|}
== Orbit ==
It takes 88 days.<math>x^2</math>
=== Spin ===
* slow
* steady [https://example.org as said here] [https://example.org]
== History ==
<gallery>
File:A.jpg|old
</gallery>
Known since 1400&nbsp;BC.__NOTOC__ [[fr:Mercure]]
== See also ==
* [[Venus]]
== References ==
{{reflist}}
[[Category:Planets]]
"""

DAB = """'''Mercury''' most commonly refers to:
* [[Mercury (planet)]], the closest planet to the [[Sun]]
* [[mercury (element)|Mercury]] (symbol '''Hg''')<ref>x</ref>
'''Mercury''' may also refer to:
==People==
===Music===
** A singer, [[Freddie Mercury#Life|Freddie]] {{nowrap|(1946)}}
* no link at all
* [[Mercury (planet)]] again
* [[File:X.jpg]] [[wikt:mercury]]
==See also==
* [[Mercurial]]
{{disambiguation|geo|surname}}
"""


def test_articles_redirects_and_senses(packed, records, make_page, make_dump):
    body = make_dump(
        make_page(1, "Mercury (planet)", ARTICLE),
        make_page(
            2, "Hermes' planet", "#REDIRECT [[Mercury (planet)]]", redirect="Mercury (planet)"
        ),
        make_page(3, "Talk:Mercury", "chatter", ns=1),
        make_page(4, "Mercury (disambiguation)", DAB),
        make_page(5, "Old redirect", "#redirect [[Mercury_(planet)#Orbit]]"),
        make_page(6, "Nothing left", "{{Infobox|a=b}}"),
        make_page(7, "R&D <x>", "Plain & <b>bold</b> text."),
    )
    found, report = records(packed("enwiki-pages-articles.xml", body))
    article = found[0]
    assert (
        isinstance(article, Document)
        and article.id == "1"
        and article.source == "enwiki-pages-articles"
    )
    assert article.text == (
        "Mercury (Mercurius) is the planet closest to the Sun. It is 4880 km wide – small.\n"
        "It takes 88 days.\nslow\nsteady as said here\nKnown since 1400 BC."
    )
    assert [(article.text[at:].split("\n")[0], name) for at, name in article.sections] == [
        ("It takes 88 days.", "Orbit"),
        ("slow", "Orbit > Spin"),
        ("Known since 1400 BC.", "History"),
    ]
    assert found[1] == Redirect("Hermes' planet", "Mercury (planet)")
    assert found[2:5] == [
        Sense("Mercury", "Mercury (planet)", "Mercury (planet), the closest planet to the Sun"),
        Sense("Mercury", "Mercury (element)", "Mercury (symbol Hg)"),
        Sense("Mercury", "Freddie Mercury", "A singer, Freddie"),
    ]
    assert found[5] == Redirect("Old redirect", "Mercury (planet)")
    assert found[6] == Document("7", "R&D <x>", "Plain & bold text.", "enwiki-pages-articles")
    assert len(found) == 7
    assert (report.documents, report.redirects, report.senses, report.broken) == (2, 2, 3, 1)
    assert report.named[0].where == "page 'Nothing left'"


def test_multistream(tmp_path, records, make_page, make_dump):
    whole = make_dump(*(make_page(n, f"T{n}", f"Text {n}.") for n in range(1, 30)))
    path = tmp_path / "pages-articles-multistream.xml.bz2"
    path.write_bytes(
        b"".join(bz2.compress(whole[at : at + 700]) for at in range(0, len(whole), 700))
    )
    assert [document.text for document in records(path)[0]] == [f"Text {n}." for n in range(1, 30)]


def test_resumes_at_any_step(tmp_path, records, make_page, make_dump):
    path = tmp_path / "d.xml"
    path.write_bytes(
        make_dump(
            make_page(1, "One", "First."),
            make_page(2, "Mercury", DAB),
            make_page(3, "Empty", ""),
            make_page(4, "R", "", redirect="One"),
            make_page(5, "Talk:One", "no", ns=1),
            make_page(6, "Two", "Second."),
        )
    )
    corpus, report, places = Corpus(path), Report(), []
    everything = []
    for record in corpus.records(report):
        everything.append(record)
        places.append(corpus.position)
    assert places == [1, 2, 3, 4, 6, 7] and report.broken == 1
    for taken, place in enumerate(places, 1):
        assert records(path, place)[0] == everything[taken:]


def test_kinds_of_disambiguation_pages():
    assert is_disambiguation("John Smith", "* [[John Smith (poet)]]\n{{hndis|Smith, John}}")
    assert is_disambiguation("X", "{{ Dab }}") and is_disambiguation("X", "{{Geodis}}")
    assert is_disambiguation("X", "{{Place name disambiguation}}") and is_disambiguation(
        "X", "__DISAMBIG__"
    )
    assert is_disambiguation("X (disambiguation)", "")
    assert not is_disambiguation(
        "X", "{{disambiguation needed|date=May}} {{dablinks}} {{Other uses}}"
    )
    assert senses("X (disambiguation)", "nothing listed") == []


def test_a_list_without_entries_is_an_article(tmp_path, records, make_page, make_dump):
    path = tmp_path / "d.xml"
    path.write_bytes(make_dump(make_page(1, "X", "Only words.\n{{disambig}}")))
    assert [record.text for record in records(path)[0]] == ["Only words."]


def test_patterns_do_what_the_parser_does():
    plain, rough = wikipedia.plain(ARTICLE), wikipedia.rough(ARTICLE)
    assert [name for _, name in rough.sections] == [name for _, name in plain.sections]
    assert rough.text.split("\n")[1:] == plain.text.split("\n")[1:]
    assert "thumb" not in rough.text and "cite" not in rough.text and "1800" not in rough.text


@pytest.mark.parametrize(
    "hostile",
    [
        "<ref>" * 40_000,
        "{{" * 40_000,
        "[[" * 40_000,
        "{|\n" * 20_000,
        "(" + " " * 100_000,
        "<!--" * 20_000,
        "[//a" * 40_000,
        "[[File:a [[b]] " * 10_000,
        "=" * 100_000,
        "=" + " " * 100_000 + "x",
        "<gallery>" * 20_000,
        "'" * 100_000,
        "{{a|" * 20_000,
    ],
)
def test_patterns_end_on_hostile_pages(hostile):
    """A pattern that backtracks without end would lose its worker."""
    with Workers.fresh("whichsense.corpus.wikipedia:rough", 1) as workers:
        workers.submit(hostile, seconds=LONGEST).result()


def test_a_page_that_hangs_the_parser_is_stripped_by_patterns(monkeypatch):
    submit = Workers.submit

    def limited(workers, texts, seconds):
        """What hangs soon has no time left; what does not has as much as a busy machine needs."""
        hangs = any("HANG" in text for text in texts)
        return submit(workers, texts, seconds if hangs else LONGEST)

    monkeypatch.setattr(Workers, "submit", limited)
    texts = [
        ("a", "''one''"),
        ("b", "HANG [[x|two]]"),
        ("c", None),
        ("d", "DIE [[three]]"),
        ("e", "FAIL four"),
        ("f", "five"),
    ]
    with PageStripper(
        workers=1, seconds=1.0, seconds_in_batch=0, function="odd_strippers:strip_oddly"
    ) as stripper:
        found = list(stripper.strip(texts))
    assert [(name, page and (page.text, page.by_patterns)) for name, page in found] == [
        ("a", ("one", False)),
        ("b", ("HANG two", True)),
        ("c", None),
        ("d", ("DIE three", True)),
        ("e", ("FAIL four", True)),
        ("f", ("five", False)),
    ]


def test_a_python_that_cannot_start_is_told(tmp_path, records, make_page, make_dump, monkeypatch):
    path = tmp_path / "d.xml"
    path.write_bytes(make_dump(make_page(1, "One", "First.")))
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **options: popen([command[0], "-c", ""], **options)
    )
    with pytest.raises(WhichsenseError, match="Reinstall"):
        records(path)


def test_very_long_pages_go_by_patterns(tmp_path, records, make_page, make_dump, monkeypatch):
    path = tmp_path / "d.xml"
    path.write_bytes(
        make_dump(make_page(1, "Long", "''w'' " * 200_000), make_page(2, "Short", "x"))
    )
    found, report = records(path)
    assert report.rough == 1 and found[0].text.startswith("w w w")
    found, report = records(path, limits=ReadingLimits(page=1000))
    assert [document.title for document in found] == ["Short"] and "MB" in report.named[0].why


def test_stopping_early_leaves_no_process(tmp_path, make_page, make_dump):
    path = tmp_path / "d.xml"
    path.write_bytes(make_dump(*(make_page(n, f"T{n}", f"[[Text]] {n}.") for n in range(1, 2000))))
    started, popen = [], subprocess.Popen

    def remember(*args, **options):
        started.append(popen(*args, **options))
        return started[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", remember)
        stream = Corpus(path).records(Report())
        next(stream)
        stream.close()
    assert started and all(process.poll() is not None for process in started)


def test_ctrl_c_ends_the_workers_and_scripts_need_no_guard(tmp_path, make_page, make_dump):
    """A plain script, without `if __name__ == "__main__"`, interrupted in the middle."""
    path = tmp_path / "d.xml"
    path.write_bytes(
        make_dump(*(make_page(n, f"T{n}", f"[[Text]] {n}. " * 5) for n in range(1, 3000)))
    )
    script = tmp_path / "script.py"
    script.write_text(
        "import signal, sys\nfrom whichsense.corpus import Corpus, Report\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        f"for record in Corpus({str(path)!r}).records(Report()):\n"
        "    print(record.id, flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"1\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LONGEST)
    assert errors.strip().endswith(b"KeyboardInterrupt")
    with contextlib.suppress(ProcessLookupError):
        assert os.getpgid(process.pid) != process.pid


def test_a_script_that_ends_does_not_wait_for_what_is_queued(tmp_path):
    done = tmp_path / "done"
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from whichsense.corpus.wikipedia import PageStripper

pages = [(number, "text") for number in range(59)]
with PageStripper(1, batch_pages=1, function="odd_strippers:strip_first") as stripper:
    for page in stripper.strip(pages):
        raise KeyboardInterrupt
"""
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
        env={**os.environ, "STRIPPED": str(done)},
    )
    assert ended.returncode != 0 and "KeyboardInterrupt" in ended.stderr
    assert 1 <= len(done.read_text()) < 30  # of 59 batches


def test_dumps_that_are_none(tmp_path, records, make_page, make_dump):
    whole = make_dump(make_page(1, "One", "First."), make_page(2, "Two", "Second."))
    path = tmp_path / "d.xml"
    for body, why in (
        (whole[:-200], "is cut short"),
        (whole.replace(b"</title>", b"</titel>", 1), "broken at line"),
        (b"<rss><page/></rss>", "not a Wikipedia dump"),
        (make_dump(make_page(1, "Talk:One", "x", ns=1)), "nothing usable"),
        (
            b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha">]><mediawiki>&a;</mediawiki>',
            "entities",
        ),
        (b"just text", "broken at line 1"),
    ):
        path.write_bytes(body)
        with pytest.raises(BadInput, match=why):
            records(path)
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    path.write_text(
        f'<!DOCTYPE m [<!ENTITY l0 "ha">{laughs}]><mediawiki><page><title>&l9;</title></page></mediawiki>'
    )
    with pytest.raises(BadInput, match="entities"):
        records(path)


def test_an_endless_tag_is_refused(tmp_path, records):
    path = tmp_path / "d.xml"
    path.write_bytes(b"<mediawiki><page " + b"a" * 2**21)
    with pytest.raises(BadInput, match="endless"):
        records(path, limits=ReadingLimits(tag=2**16))
