"""The workbench: what a member does with an item, from taking it to submitting it."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from whichsense import sample
from whichsense.errors import BadInput
from whichsense.index import Index
from whichsense.studio import leases, qualifying
from whichsense.studio.agreement import difference
from whichsense.studio.checks import Finding, Value, error, mark_edits, present
from whichsense.studio.database import VERSIONED, items, slots
from whichsense.studio.effort import seconds_by_item
from whichsense.studio.history import (
    Draft,
    Event,
    NotHeld,
    by_draft,
    change_draft,
    fold,
    payloads,
    read_draft,
    read_events,
    record,
)
from whichsense.studio.items import Item
from whichsense.studio.kinds import Kind
from whichsense.studio.leases import Lease
from whichsense.studio.members import Member, Members, Paused, read_pause
from whichsense.studio.project import Project
from whichsense.types import Passage

_TRIES = 5  # takes of a member at the same time
_SNIPPET = 300  # characters of a hit that the record of a search keeps


class NotComplete(Exception):
    """What was to be submitted has errors."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("not complete")
        self.findings = findings


class Studio:
    """A project with its database, its members and the index that is searched beside the form."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.settings = project.settings
        self.kind = project.kind
        self.database = project.database()
        self.members = Members(project.folder, self.database)
        self.agreement_cache: tuple[int, dict[str, Any]] = (0, {})
        self._index: Index | None = None
        self._opening = threading.Lock()

    @property
    def index(self) -> Index:
        """The index, opened when it is first searched."""
        with self._opening:
            if self._index is None:
                self._index = sample.open_index(self.settings.index)
            return self._index

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
        self.database.close()

    # Items.

    def item(self, number: int) -> Item:
        """An item by its number. Raises `BadInput` where there is none."""
        with self.database.reading() as connection:
            return read_item(connection, number)

    def take(self, member: Member, number: int | None = None) -> dict[str, Any] | None:
        """Give a member the next item, or a given one; None where there is none. Raises `Paused`, `Revoked`."""
        for _ in range(_TRIES):
            try:
                with self.members.writing(member) as connection:
                    taken = self._take(connection, member, number)
            except IntegrityError:
                continue  # the member's other window took a place of the same item
            return None if taken is None else self.view(member, taken)
        return None

    def _take(self, connection: Connection, member: Member, number: int | None) -> int | None:
        if reason := read_pause(connection, member.id):
            raise Paused(reason)
        part, number = self._due(connection, member, number)
        how: dict[str, Any] = {"order": self.settings.order, "item": number, "part": part}
        lease = leases.take(connection, member.id, self.settings.lease, **how)
        if lease is None:
            return None
        own: dict[str, Any] = {"annotator": member.id, "item": lease.item}
        record(connection, "take", {}, **own)
        body = read_item(connection, lease.item).body
        if "suggestion" in body:
            suggested = {"value": body["suggestion"], "shown": self._suggests}
            record(connection, "suggest", suggested, **own)
        return lease.item

    @property
    def _suggests(self) -> bool:
        return self.settings.suggestions == "shown"

    def _due(
        self, connection: Connection, member: Member, number: int | None
    ) -> tuple[str, int | None]:
        """What a member is given next: what they hold, what qualifies them, or else work."""
        if number is None:
            number = leases.held(connection, member.id)
        due = qualifying.next_item(connection, self.settings.qualification, member)
        if due is not None and number in (None, due):
            number = due
            leases.assign(connection, member.id, due, self.settings.lease)
        part = "work" if number is None else read_item(connection, number).part
        is_barred = due is not None and number != due and part == "work"
        return ("training" if is_barred else part), number

    def view(self, member: Member, number: int) -> dict[str, Any]:
        """What a member sees of an item: the item, their draft, what they searched and read. Nothing of others."""
        with self.database.reading() as connection:
            item = read_item(connection, number)
            history = read_events(connection, number, member.id)
            until = leases.until(connection, member.id, number)
            decisions = read_events(connection, number, kinds=("adjudicate",))
        draft = fold(history)
        shown = self.kind.shown(item.body, member.id)
        if self._suggests and "suggestion" in item.body:
            shown["suggestion"] = item.body["suggestion"]
        return {
            "item": number,
            "part": item.part if item.part in ("training", "test") else "work",
            "body": shown,
            "lease": until and {"until": until},
            "searches": [one["query"] for one in payloads(history, "search")],
            "viewed": _viewed(history),
            "final": decisions[-1].payload["value"] if decisions else None,
            **self._about(item, member, draft),
        }

    def _about(self, item: Item, member: Member, draft: Draft) -> dict[str, Any]:
        about = {"draft": asdict(draft), **self._check(item.body, draft.value, member)}
        if item.part == "training" and draft.is_submitted:
            value = self.kind.unswapped(item.body, member.id, draft.value)
            about["feedback"] = qualifying.feedback(self.kind, item, value)
        return about

    def check(self, number: int, value: Value, member: Member) -> dict[str, Any]:
        """What is wrong with a value, and how its rewrites differ from the question."""
        return self._check(self.item(number).body, value, member)

    def _check(self, body: Value, value: Value, member: Member) -> dict[str, Any]:
        edits = []
        if not self.kind.check_shape(value):
            rewrites = [pair.get("question", "") for pair in present(value).get("pairs", ())]
            edits = [list(map(asdict, mark_edits(body["question"], one))) for one in rewrites]
        findings = self.kind.check(self._seen(body, member), value)
        return {"findings": list(map(asdict, findings)), "edits": edits}

    def _seen(self, body: Value, member: Member) -> Value:
        """A body with the two answers of a comparison in the order in which the member sees them."""
        return {**body, **self.kind.shown(body, member.id)}

    # Changes of a draft.

    def save(self, member: Member, number: int, version: int, changed: Value) -> dict[str, Any]:
        """Keep fields of a draft. Raises `Stale`, `NotHeld`, and `NotComplete` for what no form would send."""
        wrong = self.kind.check_shape(changed)
        if wrong:
            raise NotComplete(wrong)
        with self._changing(member, number, version) as (_, item, change):
            draft = change("save", {"set": dict(changed)})
        return self._about(item, member, draft)

    def undo(
        self, member: Member, number: int, version: int, to: int | None = None
    ) -> dict[str, Any]:
        """Go back to an earlier version, by default to what was there before the last change; redo is the same."""
        with self._changing(member, number, version) as (connection, item, change):
            if to is None:
                to = read_draft(connection, number, member.id).before
            if to is None:
                raise BadInput("There is nothing to undo.")
            if not 0 <= to <= version:
                raise BadInput(f"There is no version {to} to go back to.")
            draft = change("undo", {"to": to})
        return self._about(item, member, draft)

    def submit(self, member: Member, number: int, version: int) -> dict[str, Any]:
        """Submit a draft of this version. Raises `NotComplete` where the form has errors."""
        with self._changing(member, number, version) as (connection, item, change):
            history = read_events(connection, number, member.id)
            is_first = not fold(history).is_submitted
            draft = change("submit", {})
            if is_first and (errors := self._errors(member, item, draft, history)):
                raise NotComplete(errors)  # and nothing is submitted
            if item.part == "work":
                self._compare(connection, item)
            elif is_first:
                value = self.kind.unswapped(item.body, member.id, draft.value)
                right = qualifying.score(self.kind, item, value)
                qualifying.grade(connection, self.settings.qualification, member, item, right)
        return self._about(item, member, draft)

    def _errors(
        self, member: Member, item: Item, draft: Draft, history: Sequence[Event]
    ) -> list[Finding]:
        errors = self.kind.errors(self._seen(item.body, member), draft.value)
        if self.settings.require_search and not _viewed(history):
            errors.append(error("search", "not-read", "Read at least one page before you submit."))
        return errors

    def reopen(self, member: Member, number: int, version: int) -> dict[str, Any]:
        """Take a submitted annotation back, until it is adjudicated. What qualifies is submitted once, and who may
        adjudicate sees what others wrote as soon as all have.
        """
        others = slots.c.item == number, slots.c.annotator != member.id
        with self._changing(member, number, version) as (connection, item, change):
            places = connection.scalars(sa.select(slots.c.done).where(*others)).all()
            has_seen = member.may("adjudicator") and places and all(places)
            if has_seen or item.part != "work":
                raise BadInput("This annotation can no longer be taken back.")
            draft = change("reopen", {})
            leases.renew(connection, member.id, number, self.settings.lease)
        return self._about(item, member, draft)

    @contextmanager
    def _changing(
        self, member: Member, number: int, version: int
    ) -> Iterator[tuple[Connection, Item, Callable[..., Draft]]]:
        """One transaction, the item that it locks, and what changes the member's draft of this version."""
        with self.members.writing(member) as connection:
            item = read_item(connection, number, is_locked=True)
            own: dict[str, Any] = {"annotator": member.id, "version": version}
            yield (connection, item, partial(change_draft, connection, item=number, **own))

    # Leases.

    def renew(self, member: Member, number: int, is_active: bool) -> Lease:
        """Hold an item for longer. Raises `NotHeld` where another has it by now."""
        with self.members.writing(member) as connection:
            lease = leases.renew(connection, member.id, number, self.settings.lease)
            if lease is None:
                raise NotHeld
            if is_active:
                record(connection, "active", {}, annotator=member.id, item=number)
        return lease

    def leave(self, member: Member, number: int, skip: str = "") -> None:
        """Put an item back; with a reason to skip it, it is not given to the member again. The draft is kept."""
        with self.members.writing(member) as connection:
            if not leases.release(connection, member.id, number):
                raise NotHeld
            payload = {"reason": skip} if skip else {}
            kind = "skip" if skip else "leave"
            record(connection, kind, payload, annotator=member.id, item=number)

    # Search beside the form: everything that was searched and read is kept.

    def search(self, member: Member, number: int, query: str, k: int) -> list[dict[str, Any]]:
        """Search the project's index."""
        hits = [_shown(hit.passage) for hit in self.index.search(query, k)]
        results = [
            {"id": hit["id"], "title": hit["title"], "snippet": hit["text"][:_SNIPPET]}
            for hit in hits
        ]
        self._note(member, number, "search", {"query": query, "results": results})
        return hits

    def read_page(self, member: Member, number: int, passage_id: str) -> dict[str, Any]:
        """The document that a passage is from."""
        passages = self.index.document(passage_id)
        title = passages[0].title
        self._note(member, number, "view", {"id": passage_id, "title": title})
        return {"title": title, "passages": list(map(_shown, passages))}

    def note(self, member: Member, number: int, text: str) -> None:
        """Keep a remark for the owner."""
        self._note(member, number, "note", {"text": text})

    def _note(self, member: Member, number: int, kind: str, payload: Value) -> None:
        with self.members.writing(member) as connection:
            if (leases.until(connection, member.id, number) or 0) <= time.time():
                raise NotHeld
            record(connection, kind, payload, annotator=member.id, item=number)

    # What follows from a submission.

    def _compare(self, connection: Connection, item: Item) -> None:
        """Work out how much the annotators of an item differ, and ask for one more where that is wanted."""
        overlap = self.settings.overlap
        [item] = with_values(connection, self.kind, [item])
        differ = difference(self.kind, item)
        own = items.update().where(items.c.item == item.number)
        connection.execute(own.values(difference=differ))
        if self.settings.tiebreak and len(item.values) == overlap and differ > 0:
            leases.add_slot(connection, item.number, overlap + 1)

    def status(self) -> dict[str, Any]:
        """How far the project is, and who did what."""
        with self.database.reading() as connection:
            annotations = leases.holder_count(connection)
            by_part = sa.select(items.c.part, sa.func.count()).group_by(items.c.part)
            parts = {part: count for part, count in connection.execute(by_part)}
            is_own_work = slots.c.done, items.c.part == "work"
            submitted = sa.select(slots.c.annotator).join(items, items.c.item == slots.c.item)
            done = Counter(connection.scalars(submitted.where(*is_own_work)))
            history = read_events(connection)
        spent: defaultdict[str, float] = defaultdict(float)
        for (_, who), seconds in seconds_by_item(history, self.settings.pause).items():
            spent[who] += seconds
        people = []
        for member in self.members.all():
            scores = qualifying.mean_scores(history, member.id)
            own = {"submitted": done[member.id], "seconds": spent[member.id], "scores": scores}
            people.append({**asdict(member), **own})
        return {
            "project": self.project.name,
            "kind": self.kind.name,
            "items": parts,
            "annotations": annotations,
            "members": people,
        }

    def own_work(self, member: Member) -> list[dict[str, Any]]:
        """Every item that a member has touched, with what became of it."""
        with self.database.reading() as connection:
            history = read_events(connection, annotator=member.id)
            own = sa.select(slots.c.item).where(slots.c.annotator == member.id)
            held = set(connection.scalars(own))
            touched = by_draft(history)
            of_these = items.c.item.in_([number for number, _ in touched])
            known = {one.number: one for one in _select_items(connection, of_these)}
        seconds = seconds_by_item(history, self.settings.pause)
        rows = []
        for (number, who), events in touched.items():
            draft = fold(events)
            rows.append(
                {
                    "item": number,
                    "question": known[number].body["question"],
                    "state": _state(events, draft, number in held),
                    "version": draft.version,
                    "seconds": seconds[number, who],
                    "at": events[-1].at,
                }
            )
        return sorted(rows, key=lambda row: -row["at"])


def _shown(passage: Passage) -> dict[str, Any]:
    return {"id": passage.id, "title": passage.title, "text": passage.text}


def _state(history: Sequence[Event], draft: Draft, is_held: bool) -> str:
    """What became of an item that a member took."""
    if draft.is_submitted:
        return "submitted"
    if is_held:
        return "held"
    return "skipped" if any(one.kind == "skip" for one in history) else "left"


def read_item(connection: Connection, number: int, *, is_locked: bool = False) -> Item:
    """Read an item by its number; locked, others change nothing of it until the transaction ends."""
    found = _select_items(connection, items.c.item == number, is_locked)
    if not found:
        raise BadInput(f"There is no item {number}.")
    return found[0]


def read_items(connection: Connection, *parts: str) -> list[Item]:
    """Read the items of some parts, in their order."""
    return _select_items(connection, items.c.part.in_(parts))


def _select_items(
    connection: Connection, which: sa.ColumnElement[bool], is_locked: bool = False
) -> list[Item]:
    query = sa.select(items).where(which).order_by(items.c.item)
    found = []
    for row in connection.execute(query.with_for_update(key_share=True) if is_locked else query):
        body, gold = json.loads(row.body), row.gold and json.loads(row.gold)
        found.append(Item(body, row.part, gold, row.uncertainty, row.difference, row.item))
    return found


def with_values(connection: Connection, kind: Kind, found: Sequence[Item]) -> list[Item]:
    """Items with what was submitted for them, by annotator in the order of submission, about the two answers of a
    comparison in the item's own order.
    """
    number = found[0].number if len(found) == 1 else None
    values: dict[int, dict[str, Value]] = {}
    histories = by_draft(read_events(connection, number, kinds=VERSIONED))
    for (item, who), history in sorted(histories.items(), key=lambda own: own[1][-1].id):
        if (draft := fold(history)).is_submitted:
            values.setdefault(item, {})[who] = draft.value
    return [
        replace(
            one,
            values={
                who: kind.unswapped(one.body, who, value)
                for who, value in values.get(one.number, {}).items()
            },
        )
        for one in found
    ]


def _viewed(history: Sequence[Event]) -> list[dict[str, Any]]:
    """The pages that were read, each once."""
    return list({one["title"]: one for one in payloads(history, "view")}.values())
