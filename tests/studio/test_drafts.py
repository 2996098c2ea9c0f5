"""Drafts: autosave, stale writes, undo, and what no form would send."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import Make
from whichsense.studio import Studio
from whichsense.studio.history import NotHeld, Stale, read_events
from whichsense.studio.members import Member, Paused, Revoked
from whichsense.studio.workbench import NotComplete

ANN, BEN = Member("aa", "ann", "annotator"), Member("bb", "ben", "annotator")
HOSTILE = (
    "<script>alert(1)</script>\x00 \u202e\u05d8\u05e7\u05e1\u05d8\u202c 🙂 \ud800 " + "x" * 2**20
)


def kinds(studio: Studio, item: int) -> list[str]:
    with studio.database.reading() as connection:
        return [one.kind for one in read_events(connection, item)]


def test_a_stale_write_shows_both_texts(make: Make, database_url: str) -> None:
    studio = make("generate", database=database_url)
    studio.take(ANN, 1)
    saved = studio.save(ANN, 1, 0, {"remark": "one"})
    assert saved["draft"]["version"] == 1
    with pytest.raises(Stale) as stale:
        studio.save(ANN, 1, 0, {"remark": "two"})
    assert stale.value.draft.value == {"remark": "one"}
    with pytest.raises(Stale):
        studio.save(ANN, 1, 7, {"remark": "from nowhere"})
    assert studio.view(ANN, 1)["draft"]["value"] == {"remark": "one"}
    # The same change again, because its answer was lost.
    assert studio.save(ANN, 1, 0, {"remark": "one"})["draft"]["version"] == 1
    assert kinds(studio, 1) == ["take", "save"]


def test_any_text_is_kept(make: Make, database_url: str) -> None:
    studio = make("generate", database=database_url)
    studio.take(ANN, 1)
    studio.save(ANN, 1, 0, {"remark": HOSTILE})
    assert studio.view(ANN, 1)["draft"]["value"]["remark"] == HOSTILE


def test_undo_goes_back_step_by_step_and_forth(make: Make) -> None:
    studio = make("generate")
    studio.take(ANN, 1)
    for version, text in enumerate(("a", "b", "c")):
        studio.save(ANN, 1, version, {"remark": text})

    def said(answer: dict[str, Any]) -> Any:
        return answer["draft"]["value"].get("remark")

    assert said(studio.undo(ANN, 1, 3)) == "b"
    assert said(studio.undo(ANN, 1, 4)) == "a"
    assert said(studio.undo(ANN, 1, 5)) is None
    assert said(studio.undo(ANN, 1, 6, to=3)) == "c"  # redo
    assert said(studio.save(ANN, 1, 7, {"remark": "d"})) == "d"
    assert said(studio.undo(ANN, 1, 8)) == "c"
    assert kinds(studio, 1).count("undo") == 5


def test_nobody_writes_without_a_lease(make: Make) -> None:
    studio = make("generate")
    studio.take(ANN, 1)
    for refused in (
        lambda: studio.save(BEN, 1, 0, {"remark": "mine"}),
        lambda: studio.search(BEN, 1, "cup", 3),
        lambda: studio.note(BEN, 1, "hello"),
        lambda: studio.leave(BEN, 1),
        lambda: studio.renew(BEN, 1, False),
    ):
        with pytest.raises(NotHeld):
            refused()
    assert kinds(studio, 1) == ["take"]


def test_fields_of_no_form_are_refused(make: Make) -> None:
    studio = make("generate")
    studio.take(ANN, 1)
    for changed in (
        {"nonsense": 1},
        {"pairs": "x"},
        {"outcome": "maybe"},
        {"pairs": [{"answers": [1]}]},
    ):
        with pytest.raises(NotComplete):
            studio.save(ANN, 1, 0, changed)
    assert kinds(studio, 1) == ["take"]


def test_submitted_is_closed_until_it_is_reopened(make: Make) -> None:
    studio = make("generate")
    studio.take(ANN, 1)
    studio.save(ANN, 1, 0, {"outcome": "single", "answers": ["Ann Lee"]})
    with pytest.raises(Stale):
        studio.submit(ANN, 1, 0)
    studio.submit(ANN, 1, 1)
    with pytest.raises(NotHeld):
        studio.save(ANN, 1, 2, {"remark": "late"})
    assert studio.own_work(ANN)[0]["state"] == "submitted"
    assert studio.reopen(ANN, 1, 2)["draft"]["is_submitted"] is False
    studio.save(ANN, 1, 3, {"remark": "in time"})
    studio.submit(ANN, 1, 4)
    assert kinds(studio, 1) == ["take", "save", "submit", "reopen", "save", "submit"]


def test_nothing_is_submitted_with_errors(make: Make) -> None:
    studio = make("generate", require_search=True)
    studio.take(ANN, 1)
    studio.save(ANN, 1, 0, {"outcome": "single", "answers": []})
    with pytest.raises(NotComplete) as told:
        studio.submit(ANN, 1, 1)
    assert [one.rule for one in told.value.findings] == ["empty", "not-read"]
    studio.save(ANN, 1, 1, {"answers": ["Ann Lee"]})
    hits = studio.search(ANN, 1, "who won the first cup", 2)
    assert hits[0]["title"] == "Cup"
    assert studio.read_page(ANN, 1, hits[0]["id"])["title"] == "Cup"
    studio.submit(ANN, 1, 2)
    view = studio.view(ANN, 1)
    assert view["searches"] == ["who won the first cup"]
    assert [page["title"] for page in view["viewed"]] == ["Cup"]


def test_one_more_is_asked_where_two_disagree(make: Make) -> None:
    studio = make("generate", overlap=2, tiebreak=True)
    for number, answers in ((1, ("Ann Lee", "Bo Ray")), (2, ("Ann Lee", "ann lee"))):
        for member, answer in zip((ANN, BEN), answers, strict=True):
            studio.take(member, number)
            studio.save(member, number, 0, {"outcome": "single", "answers": [answer]})
            studio.submit(member, number, 1)
    third = Member("cc", "cem", "annotator")
    assert studio.take(third, 1) is not None
    assert studio.take(third, 2) is None


def test_who_left_writes_nothing_more(make: Make, database_url: str) -> None:
    """Also where the request had begun: the write looks again, in its own transaction."""
    studio = make("generate", database=database_url)
    studio.members.invite("olga", "owner")
    studio.members.invite("ann")
    olga, ann = studio.members.all()
    studio.take(ann, 1)
    studio.save(ann, 1, 0, {"remark": "in time"})
    studio.members.pause(ann.id, "see me", olga.id)
    with pytest.raises(Paused, match="see me"):
        studio.take(ann, 1)
    studio.save(ann, 1, 1, {"remark": "a pause ends nothing that was begun"})
    studio.members.revoke(ann.id, olga.id)
    for refused in (
        lambda: studio.save(ann, 1, 2, {"remark": "late"}),
        lambda: studio.submit(ann, 1, 2),
        lambda: studio.take(ann, 2),
        lambda: studio.note(ann, 1, "late"),
        lambda: studio.renew(ann, 1, True),
        lambda: studio.leave(ann, 1),
    ):
        with pytest.raises(Revoked):
            refused()
    assert kinds(studio, 1) == ["take", "save", "save"]


def test_a_reader_sees_one_state(make: Make, database_url: str) -> None:
    studio = make("generate", database=database_url)
    with studio.database.reading() as connection:
        assert read_events(connection, 1) == []
        studio.take(ANN, 1)
        assert read_events(connection, 1) == []
    assert kinds(studio, 1) == ["take"]
