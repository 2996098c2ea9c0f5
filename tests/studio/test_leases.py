"""Leases under fire: no item over its overlap, no annotator twice on one."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import TimeoutError

from conftest import Make
from whichsense.studio import Studio, leases
from whichsense.studio.database import slots
from whichsense.studio.history import change_draft, record
from whichsense.studio.leases import Lease

ROWS = [{"question": f"Who won cup {n}?"} for n in range(200)]


def submit(studio: Studio, item: int, name: str) -> None:
    own = {"item": item, "annotator": name}
    changed = {"set": {"outcome": "nothing"}}
    with studio.database.writing() as connection:
        saved = change_draft(connection, "save", changed, version=0, **own)
        change_draft(connection, "submit", {}, version=saved.version, **own)


def take(studio: Studio, name: str, seconds: float = 300, **how: Any) -> Lease | None:
    with studio.database.writing() as connection:
        return leases.take(connection, name, seconds, **how)


def renew(studio: Studio, name: str, seconds: float) -> Lease | None:
    with studio.database.writing() as connection:
        return leases.renew(connection, name, 1, seconds)


def patiently(act: Callable[[], Any]) -> Any:
    """Try again where all connections were in use for too long, as a page does that is told so."""
    while True:
        with contextlib.suppress(TimeoutError):
            return act()


class Crowd:
    """Annotators who take, leave and submit at once; it keeps how many held an item at the same time at most."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.guard = threading.Lock()
        self.holders: dict[int, set[str]] = defaultdict(set)
        self.most = 0
        self.failures: list[BaseException] = []

    def work(self, name: str) -> None:
        """Take 20 times; of five takes submit two, and leave the others."""
        try:
            for turn in range(20):
                if lease := patiently(lambda: take(self.studio, name)):
                    self.hold(lease.item, name)
                    patiently(partial(self.end, lease.item, name, is_submitted=turn % 5 < 2))
        except BaseException as error:
            self.failures.append(error)

    def hold(self, item: int, name: str) -> None:
        with self.guard:
            self.holders[item].add(name)
            self.most = max(self.most, len(self.holders[item]))

    def end(self, item: int, name: str, is_submitted: bool) -> None:
        if is_submitted:
            submit(self.studio, item, name)
            return
        with self.guard:
            self.holders[item].discard(name)
        with self.studio.database.writing() as connection:
            assert leases.release(connection, name, item)


def test_a_thousand_takes_by_fifty_annotators(make: Make, database_url: str) -> None:
    """Others can then submit exactly what is left."""
    studio = make("generate", ROWS, overlap=2, database=database_url)
    crowd = Crowd(studio)
    threads = [threading.Thread(target=crowd.work, args=(f"ann{n}",)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not crowd.failures
    assert crowd.most == 2
    for name in ("eve", "fay"):
        while lease := take(studio, name):
            submit(studio, lease.item, name)
    with studio.database.reading() as connection:
        rows = connection.execute(sa.select(slots.c.item, slots.c.annotator, slots.c.done)).all()
    assert all(row.done for row in rows)
    assert len(rows) == len({(row.item, row.annotator) for row in rows}) == 400


def test_an_item_is_given_once_to_two_windows(make: Make, database_url: str) -> None:
    studio = make("generate", overlap=2, database=database_url)
    first = take(studio, "ann")
    again = take(studio, "ann")
    assert first is not None and again is not None
    assert first.item == again.item
    assert take(studio, "ann", item=2) is not None
    # Held already, also where another place of it is free.
    assert take(studio, "ben", item=2) is not None
    assert take(studio, "cem", item=2) is None


def test_a_lease_that_ran_out_is_given_to_another(make: Make, database_url: str) -> None:
    studio = make("generate", QUESTION, database=database_url)
    assert take(studio, "ann", -1) is not None
    assert renew(studio, "ann", -1) is not None  # nobody was faster
    assert take(studio, "ben") is not None
    assert renew(studio, "ann", 300) is None
    assert take(studio, "ann") is None
    with studio.database.writing() as connection:
        assert not leases.release(connection, "ann", 1)
        assert leases.release(connection, "ben", 1)
    assert take(studio, "ann") is not None


QUESTION = [{"question": "Who won?"}]


def test_what_was_skipped_is_not_given_again(make: Make) -> None:
    studio = make("generate", QUESTION)
    assert take(studio, "ann") is not None
    with studio.database.writing() as connection:
        leases.release(connection, "ann", 1)
        record(connection, "skip", {"reason": "unclear"}, annotator="ann", item=1)
    assert take(studio, "ann") is None
    assert take(studio, "ann", item=1) is not None


def test_orders(make: Make) -> None:
    rows = [{"question": f"Who won {n}?", "uncertainty": n % 3 / 2} for n in range(6)]
    uncertain = make("generate", rows, order="most uncertain")
    taken = [take(uncertain, f"a{n}", order="most uncertain") for n in range(3)]
    assert [lease.item for lease in taken if lease] == [3, 6, 2]

    def own_order(name: str) -> list[int]:
        studio = make("generate", rows, order="random", overlap=1)
        found = []
        while lease := take(studio, name, order="random"):
            found.append(lease.item)
            submit(studio, lease.item, name)
        return found

    ann, ben = own_order("ann"), own_order("ben")
    assert sorted(ann) == sorted(ben) == [1, 2, 3, 4, 5, 6]
    assert ann != ben
    assert own_order("ann") == ann
