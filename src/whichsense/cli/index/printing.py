"""What the commands of whichsense index print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from whichsense.index import Health, Manifest


def health_table(health: Health) -> dict[str, Any]:
    """What a check found, as JSON has it."""
    served = None
    if health.manifest:
        served = {
            "generation": health.manifest.generation,
            "passages": health.manifest.passages,
        }
    return {
        "sound": health.sound,
        "served": served,
        "problems": health.problems,
        "notes": health.notes,
    }


def print_built(manifest: Manifest, folder: Path, as_json: bool) -> None:
    """Print what a build or an add has made."""
    if as_json:
        print(json.dumps(summary(manifest), ensure_ascii=False))
        return
    from whichsense.corpus import Report

    click.echo(Report.from_dict(dict(manifest.report)).summary(), err=True)
    print(f"{folder}: {manifest.passages:,} passages")


def summary(manifest: Manifest) -> dict[str, Any]:
    """What an index holds and what it was built from."""
    return {
        "passages": manifest.passages,
        "generation": manifest.generation,
        "created": manifest.created,
        "bytes": sum(record.size for record in manifest.files.values()),
        "encoder": manifest.encoder,
        "shards": len(manifest.sharding.rows) if manifest.sharding else None,
        "settings": manifest.settings,
        "sources": manifest.sources,
        "report": manifest.report,
    }


def readable(name: str, value: Any) -> str:
    """A value of that summary, for a person."""
    if name == "sources":
        paths = []
        for source in value:
            paths += source["paths"]
        more = f" and {len(paths) - 5:,} more" if len(paths) > 5 else ""
        return ", ".join(paths[:5]) + more
    if isinstance(value, dict):
        items = []
        for key, item in value.items():
            if not isinstance(item, list):
                items.append(f"{key} {item}")
        return ", ".join(items)
    return f"{value:,}" if isinstance(value, int) else str(value)
