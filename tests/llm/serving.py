"""A real language model behind a real server, in a process of its own: llama.cpp by way of xllamacpp."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import free_port

from patience import LONGEST
from whichsense.files import cache_folder

SMOLLM2 = "smollm2-135m-instruct-q4_1.gguf"


def model_path(name: str) -> Path:
    """The file of a model. Skips the test where it, or the server, cannot be had."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp, which serves language models, is not installed")
    own = os.environ.get("WHICHSENSE_TEST_MODELS")
    path = (Path(own) if own else cache_folder() / "test-models") / name
    if not path.is_file():
        pytest.skip(f"{name} is not in {path.parent}: run python scripts/models.py")
    return path


@contextlib.contextmanager
def serving(name: str) -> Iterator[str]:
    """The URL of a server of this model, for as long as it is needed."""
    path = model_path(name)
    port = free_port()
    command = [sys.executable, __file__, str(path), str(port)]
    log = subprocess.DEVNULL
    tests = {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | tests) as process:
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    ends_at = time.monotonic() + LONGEST
    while time.monotonic() < ends_at:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        with contextlib.suppress(urllib.error.URLError, OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        time.sleep(0.2)
    raise RuntimeError("the server did not start in time")


def main(path: str, port: str) -> None:
    """Serve a model until the process is killed."""
    import threading

    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.model_alias = {"small"}
    parameters.port = int(port)
    parameters.n_ctx = 8192
    parameters.n_parallel = 2
    parameters.warmup = False
    for processor in (parameters.cpuparams, parameters.cpuparams_batch):
        processor.n_threads = 2
        processor.poll = 0  # tests run beside each other: no thread spins
    server = xllamacpp.Server(parameters)
    while server.listening_address:  # it serves in threads of its own
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
