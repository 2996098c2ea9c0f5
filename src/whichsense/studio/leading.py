"""Routes for who leads a project: progress, members, adjudication, agreement, pay, exports."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from starlette.responses import Response

from whichsense.serve.guard import json_only
from whichsense.serve.problems import not_found
from whichsense.studio import adjudication, reports
from whichsense.studio.access import Adjudicator, Body, Desk, Json, Number, Owner
from whichsense.studio.exports import FORMATS, export_archive
from whichsense.studio.history import read_events
from whichsense.studio.members import invitation_link
from whichsense.studio.workbench import Studio

router = APIRouter(prefix="/v1", dependencies=[Depends(json_only)])


class InviteBody(Body):
    name: str = Field(max_length=100)
    role: str = "annotator"


class ReasonBody(Body):
    reason: str = Field("", max_length=1000)


class DecisionBody(Body):
    version: int = Field(ge=0, le=2**31 - 1)
    value: Json | None = None
    accept: str = Field("", max_length=100)


@router.get("/status")
def status(studio: Desk, member: Adjudicator) -> Json:
    """How far the project is, and who did what."""
    return studio.status()


@router.get("/events")
def events(
    studio: Desk,
    member: Owner,
    item: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    annotator: Annotated[str | None, Query(max_length=100)] = None,
) -> Json:
    """Everything that happened, of an item or of a member."""
    with studio.database.reading() as connection:
        history = read_events(connection, item, annotator)
    return {"events": [dataclasses.asdict(one) for one in history]}


@router.get("/members")
def members(studio: Desk, member: Owner) -> Json:
    """Everyone who takes part."""
    return {"members": [dataclasses.asdict(one) for one in studio.members.all()]}


@router.post("/members", status_code=201)
def invite(body: InviteBody, request: Request, studio: Desk, member: Owner) -> Json:
    """Invite somebody; the link is shown once."""
    token = studio.members.invite(body.name, body.role)
    return {"link": invitation_link(str(request.base_url), token)}


@router.delete("/members/{member_id}", status_code=204)
def revoke(member_id: str, studio: Desk, member: Owner) -> None:
    """End a membership; what was written is kept."""
    _existing(studio, member_id)
    studio.members.revoke(member_id, member.id)


@router.post("/members/{member_id}/pause", status_code=204)
def pause(member_id: str, body: ReasonBody, studio: Desk, member: Owner) -> None:
    """Give a member nothing new."""
    _existing(studio, member_id)
    studio.members.pause(member_id, body.reason or "by an owner", member.id)


@router.post("/members/{member_id}/resume", status_code=204)
def resume(member_id: str, studio: Desk, member: Owner) -> None:
    """Let a paused member go on."""
    _existing(studio, member_id)
    studio.members.resume(member_id, member.id)


def _existing(studio: Studio, member_id: str) -> None:
    if studio.members.find(member_id) is None:
        raise not_found("member", "See /v1/members.")


# What many have said of the same item.


@router.get("/adjudication")
def adjudication_queue(studio: Desk, member: Adjudicator) -> Json:
    """What can be decided, the most different first."""
    return {"items": adjudication.queue(studio, member)}


@router.get("/adjudication/{number}")
def adjudication_case(number: Number, studio: Desk, member: Adjudicator) -> Json:
    """Every annotation of an item."""
    return adjudication.open_case(studio, member, number)


@router.post("/adjudication/{number}")
def adjudicate(number: Number, body: DecisionBody, studio: Desk, member: Adjudicator) -> Json:
    """Write the final annotation, or accept one."""
    return adjudication.decide(
        studio, member, number, body.version, value=body.value, accept=body.accept
    )


@router.get("/agreement")
def agreement(studio: Desk, member: Adjudicator) -> Json:
    """How far annotators agree, and the table behind it."""
    return reports.agreement(studio)


@router.get("/pay")
def pay(studio: Desk, member: Owner) -> Json:
    """What everyone is owed."""
    return reports.pay(studio)


@router.get("/export/{name}")
def export(name: str, studio: Desk, member: Owner) -> Response:
    """The data with its statement, in one archive."""
    if name not in FORMATS:
        raise not_found("format", f"Formats: {', '.join(FORMATS)}.")
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Response(export_archive(studio, name), media_type="application/zip", headers=headers)
