"""JSON schemas for models: what pydantic makes of a type, without what only costs tokens."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter


@cache
def schema_of(model: Any) -> dict[str, Any]:
    """The schema of a type. It is shared: nobody may change it."""
    schema = TypeAdapter(model).json_schema(mode="serialization")
    pruned: dict[str, Any] = _pruned(schema)
    return pruned


def _pruned(value: Any) -> Any:
    """Without titles, which repeat names, and defaults of null, which say that a field may be left out.

    >>> _pruned({"title": "Ask", "properties": {"title": {"title": "Title", "type": "string", "default": None}}})
    {'properties': {'title': {'type': 'string'}}}
    """
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, item in value.items():
        is_title = name == "title" and isinstance(item, str)
        if not is_title and not (name == "default" and item is None):
            kept[name] = _pruned(item)
    return kept
