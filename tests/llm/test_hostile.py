"""Servers that misbehave: the embedded model answers and says so, or there is a clear error, always in time."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("openai")

import servers
from servers import QUESTION, pipeline_for, send, served, settings_for

from patience import LONGEST
from whichsense.errors import WhichsenseError
from whichsense.jobs.limits import Limits
from whichsense.models.compact.scene import Compact
from whichsense.models.llm.endpoint import LLMFault
from whichsense.types import Case

HOSTILE = {
    "times out": servers.hangs,
    "trickles its headers": servers.trickles_headers,
    "sends half a JSON": servers.breaks_off,
    "sends 10 MB": servers.sends_much,
    "sends a web page": servers.sends_garbage,
    "has not this model": servers.answers_status(404, "model 'm' not found"),
    "is overloaded": servers.answers_status(503),
    "refuses the key": servers.answers_status(401, "bad key sk-secret-1234567890"),
    "answers in prose": servers.says("Of course! Both films are wonderful."),
    "repeats the prompt": servers.repeats_prompt,
}


@pytest.fixture(scope="module")
def embedded(compact: Compact) -> Case:
    """What the embedded model answers by itself."""
    from whichsense.pipeline import Pipeline
    from whichsense.stages.disambiguate import CompactDisambiguator
    from whichsense.stages.read import CompactReader
    from whichsense.stages.rerank import CompactReranker
    from whichsense.stages.verify import CompactVerifier
    from whichsense.testing import FakeRetriever

    pipeline = Pipeline(
        FakeRetriever(servers.HITS),
        CompactReranker(compact),
        CompactReader(compact),
        CompactDisambiguator(compact),
        CompactVerifier(compact),
    )
    case = pipeline.ask(QUESTION)
    assert len(case.readings) == 2
    return case


@pytest.mark.parametrize("name", HOSTILE)
def test_the_embedded_model_answers(name: str, compact: Compact, embedded: Case) -> None:
    with served(HOSTILE[name]) as (url, asked):
        # So that what hangs runs out of time; what has none left otherwise is replaced all the same.
        pipeline = pipeline_for(settings_for(url, timeout=2.0), compact)
        begun = time.monotonic()
        case = pipeline.ask(QUESTION)
        seconds = time.monotonic() - begun
    assert asked.bodies
    assert case.readings == embedded.readings
    replaced = [note.partition("in its place: ")[2] for note in case.notes]
    assert any(stages.startswith("read") for stages in replaced)
    assert any(call.problem for call in case.calls)
    assert seconds < LONGEST  # a server that hangs does so for twice as long
    assert "sk-secret" not in str(case.to_json())


@pytest.mark.parametrize("model", ["m", ""])
def test_nobody_listens(model: str, compact: Compact, embedded: Case, tmp_path: Path) -> None:
    """Neither with a model's name, nor where the server would have to be asked for it."""
    url = f"http://127.0.0.1:{servers.free_port()}/v1"
    settings = settings_for(url, model=model, cache=True, cache_folder=str(tmp_path))
    case = pipeline_for(settings, compact).ask(QUESTION)
    assert case.readings == embedded.readings
    assert "the connection failed" in case.notes[0]


def test_strictness_is_a_clear_error(compact: Compact) -> None:
    with served(servers.answers_status(404, "model 'm' not found")) as (url, _):
        pipeline = pipeline_for(settings_for(url, fallback=False), compact)
        with pytest.raises(WhichsenseError, match=r"404.*'m' not found.*Check that"):
            pipeline.ask(QUESTION)


def test_a_deadline_leaves_time_for_the_embedded_model(compact: Compact, embedded: Case) -> None:
    """The endpoint gets a part of the time; its own limit would take all of it."""
    with served(servers.hangs) as (url, _):
        pipeline = pipeline_for(settings_for(url), compact)
        for seconds in (10, 60, 360):  # the embedded model needs more on a busy machine
            case = pipeline.ask(QUESTION, limits=Limits.of(seconds=seconds))
            if not case.stopped:
                break
    assert not case.stopped
    assert case.readings == embedded.readings


def test_who_goes_away_is_not_waited_for(compact: Compact) -> None:
    with served(servers.hangs) as (url, asked):
        pipeline = pipeline_for(settings_for(url), compact)
        limits = Limits(cancelled=lambda: bool(asked.bodies))
        begun = time.monotonic()
        case = pipeline.ask(QUESTION, limits=limits)
    assert case.stopped == "cancelled"
    assert time.monotonic() - begun < LONGEST  # the server's own time, and the limit


def test_an_answer_that_is_not_in_the_evidence_is_not_given(compact: Compact) -> None:
    """Whatever a server says, only words of the passages come out."""
    said = '{"answered": "yes", "answers": ["Orson Welles", "Ida Morrow"], "question": "Pay here?"}'
    with served(servers.says(said)) as (url, _):
        case = pipeline_for(settings_for(url), compact).ask(QUESTION)
    answers = {one.answer for one in (*case.readings, *case.possible)}
    assert "Ida Morrow" in answers
    assert "Orson Welles" not in str(case.readings) + str(case.answers)
    assert "Pay here" not in str(case.readings)


def test_429_then_200(compact: Compact) -> None:
    """A server that is busy at first is asked again."""

    def behave(handler: object, asked: servers.Asked) -> None:
        if len(asked.bodies) == 1:
            send(handler, 429, {"error": {"message": "slow down"}}, Retry_After="0")  # type: ignore[arg-type]
        else:
            servers.says('{"answered": "yes", "answers": ["Ida Morrow"]}')(handler, asked)  # type: ignore[arg-type]

    with served(behave) as (url, asked):
        settings = settings_for(url, parallel=1, windows=1, retries=2)
        pipeline = replace(pipeline_for(settings, compact), verifier=None, detector=None)
        case = pipeline.ask(QUESTION)
    first, *_ = case.calls
    assert (first.attempts, first.problem, first.tokens_in) == (2, "", 10)
    assert "read" not in str(case.notes)
    assert len(asked.bodies) >= 2


def test_what_a_server_refuses_is_left_out(compact: Compact) -> None:
    """An old server without schemas and log probabilities, and a new one that wants another name for max_tokens."""
    refusals = ("response_format", "logprobs", "max_tokens")

    def behave(handler: object, asked: servers.Asked) -> None:
        for name in refusals:
            if name in asked.bodies[-1]:
                message = {"error": {"message": f"unsupported parameter: {name}"}}
                return send(handler, 400, message)  # type: ignore[arg-type]
        return servers.says('```json\n{"answered": "yes", "answers": ["Per Lund",]}')(
            handler, asked
        )  # type: ignore[arg-type]

    with served(behave) as (url, asked):
        settings = settings_for(url, parallel=1, windows=2)
        pipeline = replace(pipeline_for(settings, compact), verifier=None, detector=None)
        case = pipeline.ask(QUESTION)
    assert "Per Lund" in {one.answer for one in case.answers}
    assert not case.calls[0].problem
    # Each is refused once, and then not asked for any more.
    assert [sum(name in body for body in asked.bodies) for name in refusals] == [1, 2, 3]
    assert "max_completion_tokens" in asked.bodies[-1]


def test_the_error_names_no_key() -> None:
    from whichsense.models.llm.endpoint import Endpoint, Request

    key = "topsecret-value"
    with served(servers.answers_status(400, f"wrong: {key}")) as (url, asked):
        endpoint = Endpoint(settings_for(url), {"WHICHSENSE_LLM_KEY": key})
        request = Request("read", "s", "u", 5)
        with pytest.raises(LLMFault) as fault:
            endpoint.complete(request, time.monotonic() + LONGEST, Limits())
    assert asked.headers[0]["authorization"] == f"Bearer {key}"
    assert key not in str(fault.value) + repr(endpoint) + str(endpoint.settings)
