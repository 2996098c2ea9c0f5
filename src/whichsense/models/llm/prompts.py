"""What a language model is asked and how it is reached: prompts from files, settings of the endpoint."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from whichsense.errors import BadConfig, BadInput, did_you_mean
from whichsense.types import frozen

# Prompts are files: a user may read each of them, and put another in its place.
#
# A file `NAME.md` has what it is for, then the headings `## system` and `## user` with the two
# messages. Words in braces are filled in: `{question}`. A folder of the user's wins over those that
# ship, file by file.

FOLDER = Path(__file__).with_name("prompts")
_FIELD = re.compile(r"\{([a-z_]+)\}")
_HEADING = re.compile(r"^## (system|user)[ \t]*$", re.MULTILINE)


@frozen
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
        """Return the user's message with its fields filled in. Braces within the values are left as they are."""
        return _FIELD.sub(lambda match: values[match[1]], self.user)


def names() -> list[str]:
    """Return the names of all prompts."""
    return sorted(path.stem for path in FOLDER.glob("*.md"))


def load_prompt(name: str, folder: str = "") -> Prompt:
    """Return a prompt: the user's, or the one that ships."""
    path = _path(name, folder)
    prompt, shipped = _read(path), _read(FOLDER / f"{name}.md")
    unknown = sorted(prompt.fields - shipped.fields)
    if unknown:
        raise BadConfig(
            f"'{path}': there is no field '{{{unknown[0]}}}'. {did_you_mean(unknown[0], shipped.fields)}"
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
        raise BadConfig(f"'{path}' needs the headings '## system' and '## user', each once.")
    about = parts[0].strip().partition("\n")[0]
    return Prompt(path.stem, messages["system"], messages["user"], about)


def read_text(name: str, folder: str = "") -> str:
    """Return the file of a prompt as it is: the user's, or the one that ships."""
    return _path(name, folder).read_text(encoding="utf-8")


def _path(name: str, folder: str) -> Path:
    own = Path(folder) / f"{name}.md"
    return own if folder and own.is_file() else FOLDER / f"{name}.md"


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
    """Return all prompts as a folder of the user's makes them. Raises `BadConfig` for one that cannot be used, or
    that has the name of none.
    """
    if folder and not Path(folder).is_dir():
        raise BadConfig(f"[llm] prompts: there is no folder '{folder}'.")
    for path in Path(folder).glob("*.md") if folder else ():
        if path.stem not in names():
            raise BadConfig(
                f"'{path}': there is no prompt '{path.stem}'. {did_you_mean(path.stem, names())}"
            )
    return {name: load_prompt(name, folder) for name in names()}


# How a language model is reached: what a system's `[llm]` says, completed by the environment.

URL_VARIABLE = "WHICHSENSE_LLM_URL"
MODEL_VARIABLE = "WHICHSENSE_LLM_MODEL"
KEY_VARIABLE = "WHICHSENSE_LLM_KEY"
_VENDOR_KEY_VARIABLE = "OPENAI_API_KEY"
_VENDOR_HOST = "api.openai.com"
_NO_KEY = "none"  # local servers ask for none, and the client wants a string
Support = Literal["auto", "on", "off"]


@frozen
class LLMSettings:
    """A system's `[llm]`. A key is never a setting: it stays in the environment."""

    url: str = ""
    """Of an OpenAI-compatible server, such as http://localhost:8080/v1; empty: WHICHSENSE_LLM_URL."""
    model: str = ""
    """As the server names it; empty: WHICHSENSE_LLM_MODEL, or the server's only model."""
    key_variable: str = ""
    """The environment variable that holds the key; empty: WHICHSENSE_LLM_KEY."""
    prompts: str = ""
    """A folder with prompt files that take the place of those of the same name."""
    fallback: bool = True
    """Whether the embedded default answers a stage in which the endpoint fails. If not, that is an error."""
    trust: float = 0.5
    """How much the model's word counts beside the embedded encoder's, from 0 to 1. A model of a few hundred million
    parameters deserves 0.2, a large one 1."""
    timeout: float = 60.0
    """Seconds for one call, with everything that it waits for."""
    deadline: float = 300.0
    """Seconds for all calls of a question; 0: no limit."""
    retries: int = 2
    """How often a call is tried again after 429, 5xx or a broken connection."""
    max_tokens: int = 60_000
    """Tokens that all calls of a question may read and write; 0: no limit."""
    max_cost: float = 0.0
    """What a question may cost, in the currency of the prices below; 0: no limit."""
    price_in: float = 0.0
    """Of a million tokens that are read."""
    price_out: float = 0.0
    """Of a million tokens that are written."""
    parallel: int = 4
    """Calls of a question that are made at the same time."""
    windows: int = 8
    """Passages that are read for answers."""
    samples: int = 2
    """Rewrites that are drawn for each answer."""
    structured: Support = "auto"
    """Whether the server is asked for JSON by a schema. "auto": until it refuses."""
    logprobs: Support = "auto"
    """Whether the server is asked for log probabilities. "auto": until it refuses."""
    cache: bool = True
    """Whether replies are kept on disk."""
    cache_folder: str = ""
    """Empty: the user's cache folder."""
    cache_megabytes: float = 200.0
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else a server wants to be told with every call, such as {"reasoning_effort": "low"}."""

    def __post_init__(self) -> None:
        if not 0 <= self.trust <= 1:
            raise BadConfig(f"[llm] trust is between 0 and 1; this is {self.trust}.")
        for name in ("timeout", "parallel", "windows", "samples"):
            if getattr(self, name) <= 0:
                raise BadConfig(f"[llm] {name} must be more than 0.")


def resolve(settings: LLMSettings, environment: Mapping[str, str]) -> LLMSettings:
    """Return the settings with what the environment adds and a URL that can be called.

    >>> resolve(LLMSettings(), {"WHICHSENSE_LLM_URL": "http://localhost:8080"}).url
    'http://localhost:8080/v1'
    """
    url = settings.url or environment.get(URL_VARIABLE, "")
    if not url:
        raise BadConfig(
            f"No language model is named. Give its URL: --llm URL, {URL_VARIABLE}, or [llm] url in the system's file."
        )
    model = settings.model or environment.get(MODEL_VARIABLE, "")
    return replace(settings, url=_checked_url(url), model=model)


def _checked_url(url: str) -> str:
    """Return a URL without secrets; "/v1" is added where there is no path."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadConfig(
            f"'{parts.scheme}://{parts.hostname or ''}' is no URL of a server. Give one such as http://localhost:8080/v1."
        )
    if parts.username or parts.password or parts.query:
        raise BadConfig(
            f"A URL of a language model holds no name, password or query, which would be logged. "
            f"Put the key into {KEY_VARIABLE}."
        )
    path = parts.path.rstrip("/") or "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def find_key(settings: LLMSettings, environment: Mapping[str, str]) -> str:
    """Return the key of an endpoint. The vendor's own variable is used for the vendor's own server alone.

    >>> find_key(LLMSettings(url="http://localhost/v1"), {"OPENAI_API_KEY": "secret"})
    'none'
    """
    if settings.key_variable:
        key = environment.get(settings.key_variable, "")
        if not key:
            raise BadConfig(
                f"[llm] key_variable names '{settings.key_variable}', which is not set. Set it to the key."
            )
        return key
    key = environment.get(KEY_VARIABLE, "")
    if not key and urlsplit(settings.url).hostname == _VENDOR_HOST:
        key = environment.get(_VENDOR_KEY_VARIABLE, "")
    return key or _NO_KEY


def current_environment() -> Mapping[str, str]:
    return os.environ
