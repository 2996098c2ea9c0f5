"""Resources: every passage by its id, and the app with buttons."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, unquote

from mcp.server.apps import APP_MIME_TYPE, client_supports_apps
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceLink,
    ResourceTemplate,
    TextResourceContents,
)

from whichsense.errors import BadInput
from whichsense.serve.mcp.calls import Context
from whichsense.serve.mcp.outputs import passage_output
from whichsense.serve.service import Service

APP = "ui://whichsense/readings.html"
_PASSAGES = "whichsense://passages/"
_TEXT = "text/plain"
_LONGEST_URI = 3_000


@lru_cache(1)
def _app_page() -> str:
    page = Path(__file__).with_name("app") / "readings.html"
    return page.read_text("utf-8")


def app_meta() -> dict[str, object]:
    """What a tool says of its app."""
    return {"ui": {"resourceUri": APP}}


def link(passage_id: str, title: str) -> ResourceLink:
    """A link to a passage, which the client may open."""
    uri = _PASSAGES + quote(passage_id, safe="")
    return ResourceLink(uri=uri, name=title or passage_id, mime_type=_TEXT)


def list_resources(context: Context) -> ListResourcesResult:
    """The app, for clients that show it. Passages are too many to be listed: see the template."""
    if not client_supports_apps(context):
        return ListResourcesResult(resources=[])
    app = Resource(
        uri=APP,
        name="readings",
        title="Readings",
        description="Options as buttons, and the answers.",
        mime_type=APP_MIME_TYPE,
    )
    return ListResourcesResult(resources=[app])


def list_templates() -> ListResourceTemplatesResult:
    passages = ResourceTemplate(
        uri_template=_PASSAGES + "{id}",
        name="passage",
        title="Passage",
        description="A passage of the corpus by its id.",
        mime_type=_TEXT,
    )
    return ListResourceTemplatesResult(resource_templates=[passages])


async def read_resource(service: Service, uri: str) -> ReadResourceResult:
    if uri == APP:
        contents = TextResourceContents(
            uri=uri,
            mime_type=APP_MIME_TYPE,
            text=_app_page(),
            _meta={"ui": {"prefersBorder": False}},
        )
        return ReadResourceResult(contents=[contents])
    text = None
    if uri.startswith(_PASSAGES) and len(uri) <= _LONGEST_URI:
        passage_id = unquote(uri.removeprefix(_PASSAGES))
        text = await service.briefly(lambda: _passage_text(service, passage_id))
    if text is None:
        raise MCPError(
            code=INVALID_PARAMS,
            message="There is no such resource. Take a passage's id from evidence or from a search hit.",
        )
    contents = TextResourceContents(uri=uri, mime_type=_TEXT, text=text)
    return ReadResourceResult(contents=[contents])


def _passage_text(service: Service, passage_id: str) -> str | None:
    try:
        passage = passage_output(service.served.index.passage(passage_id))
    except BadInput:
        return None
    return f"{passage.title}\n\n{passage.text}"
