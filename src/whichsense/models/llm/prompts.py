"""Prompts are files: a user may read each of them, and put another in its place.

A file `NAME.md` has what it is for, then the headings `## system` and `## user` with the two messages. Words in braces
are filled in: `{question}`. A folder of the user's wins over those that ship, file by file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from whichsense.errors import BadConfig, BadInput, did_you_mean

FOLDER = Path(__file__).with_name("prompts")
_FIELD = re.compile(r"\{([a-z_]+)\}")
_HEADING = re.compile(r"^## (system|user)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file: its two messages, with fields in braces."""

    name: str
    system: str
    user: str
    about: str = ""
    """What it is for: the first line of its file."""

    @property
    def fields(self) -> set[str]:
        return set(_FIELD.findall(self.user))

    def fill(self, **values: str) -> str:
        """The user's message with its fields filled in. Braces within the values are left as they are."""
        return _FIELD.sub(lambda match: values[match[1]], self.user)


def names() -> list[str]:
    """The names of all prompts."""
    return sorted(path.stem for path in FOLDER.glob("*.md"))


def load_prompt(name: str, folder: str = "") -> Prompt:
    """A prompt: the user's, or the one that ships."""
    own = Path(folder) / f"{name}.md" if folder else None
    shipped = _read(FOLDER / f"{name}.md")
    if own is None or not own.is_file():
        return shipped
    prompt = _read(own)
    unknown = sorted(prompt.fields - shipped.fields)
    if unknown:
        raise BadConfig(
            f"'{own}': there is no field '{{{unknown[0]}}}'. {did_you_mean(unknown[0], shipped.fields)}"
        )
    return prompt


@cache
def _read(path: Path) -> Prompt:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"'{path}' cannot be read: {error}.") from None
    parts = _HEADING.split(text)
    # What stands before the first heading, then each heading and its text.
    messages = dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))
    if set(messages) != {"system", "user"}:
        raise BadConfig(
            f"'{path}' needs the headings '## system' and '## user', each once."
        )
    about = parts[0].strip().partition("\n")[0]
    return Prompt(path.stem, messages["system"], messages["user"], about)


def read_text(name: str, folder: str = "") -> str:
    """The file of a prompt as it is: the user's, or the one that ships."""
    own = Path(folder) / f"{name}.md" if folder else None
    path = own if own is not None and own.is_file() else FOLDER / f"{name}.md"
    return path.read_text(encoding="utf-8")


def copy_prompts(folder: Path, chosen: Iterable[str]) -> list[Path]:
    """Copy prompts that ship into a folder, to be edited there. A file that is there already stays as it is. Returns
    the files that are new."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        copied = []
        for name in chosen:
            path = folder / f"{name}.md"
            if not path.exists():
                path.write_text(read_text(name), encoding="utf-8")
                copied.append(path)
    except OSError as error:
        raise BadInput(f"'{folder}' cannot be written to: {error}.") from None
    return copied


def check_folder(folder: str) -> Mapping[str, Prompt]:
    """All prompts as a folder of the user's makes them. Raises `BadConfig` for one that cannot be used, or that has
    the name of none."""
    if folder and not Path(folder).is_dir():
        raise BadConfig(f"[llm] prompts: there is no folder '{folder}'.")
    for path in Path(folder).glob("*.md") if folder else ():
        if path.stem not in names():
            raise BadConfig(
                f"'{path}': there is no prompt '{path.stem}'. {did_you_mean(path.stem, names())}"
            )
    return {name: load_prompt(name, folder) for name in names()}
