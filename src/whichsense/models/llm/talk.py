"""Talks with a language model: a prompt and windows of the passages in, a checked reply out."""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from whichsense.errors import require
from whichsense.jobs.limits import Limits, current_limits
from whichsense.models.llm.endpoint import Endpoint, LLMFault, Reply, Request, Token, clean, fence
from whichsense.models.llm.prompts import load_prompt
from whichsense.text.words import QUESTION_WORDS, sentence_at, sentence_spans, words
from whichsense.types import Call, Candidate, Case, Passage, Span

# What a stage says to a language model about a case: calls in parallel, within its limits, each of
# them recorded.

Value = TypeVar("Value")
_SHARE = 0.6  # of the time that a question has left: the embedded model needs the rest, should the endpoint fail
_MOST_UNUSABLE = 0.5  # of a stage's replies
_NO_USE = "the reply cannot be used"


class Talk:
    """The calls of a stage for a case."""

    def __init__(self, endpoint: Endpoint, stage: str, case: Case) -> None:
        self.endpoint = endpoint
        self.stage = stage
        self.case = case
        self.calls: list[Call] = []
        self._lock = threading.Lock()
        self._reserved = 0  # tokens of calls that are under way
        self._limits = current_limits()
        self._ends_at = _end_of_time(endpoint, case, self._limits)

    def request(
        self,
        prompt: str,
        max_tokens: int,
        *,
        schema: dict[str, Any] | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        top_logprobs: int = 0,
        **fields: str,
    ) -> Request:
        """Return a prompt file with its fields filled in."""
        loaded = load_prompt(prompt, self.endpoint.settings.prompts)
        return Request(
            prompt,
            loaded.system,
            loaded.fill(**fields),
            max_tokens,
            schema,
            temperature,
            seed,
            top_logprobs,
        )

    def ask(
        self, requests: Sequence[Request], read: Callable[[Reply], Value | None]
    ) -> list[Value | None]:
        """Return what each reply says, None where it cannot be used. Raises `LLMFault` where the endpoint fails, and
        where too few replies can be used.
        """
        if not requests:
            return []
        workers = min(self.endpoint.settings.parallel, len(requests))
        with ThreadPoolExecutor(workers, "whichsense-llm-stage") as pool:
            futures = [pool.submit(lambda one: self._ask_one(one, read), one) for one in requests]
            try:
                values: list[Value | None] = [one.result() for one in futures]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        unusable = sum(value is None for value in values)
        if unusable > _MOST_UNUSABLE * len(values):
            raise LLMFault(
                f"The language model '{self.endpoint.model}' gave no usable reply to {unusable} of "
                f"{len(values)} calls. Use a larger model, or one that follows instructions."
            )
        return values

    def _ask_one(self, request: Request, read: Callable[[Reply], Value | None]) -> Value | None:
        begun = time.perf_counter()
        cached = self.endpoint.cached(request)
        if cached is not None:
            value = read(cached)
            self._record(request, cached, begun, cached=True, usable=value is not None)
            return value
        with self._under_way(request, begun):
            reply, attempts = self.endpoint.complete(request, self._ends_at, self._limits)
        value = read(reply)
        if value is not None:
            self.endpoint.keep(request, reply)
        self._record(request, reply, begun, attempts=attempts, usable=value is not None)
        return value

    def stream(self, request: Request) -> Iterator[str]:
        """Yield the pieces of one reply as they come."""
        begun = time.perf_counter()
        cached = self.endpoint.cached(request)
        if cached is not None:
            self._record(request, cached, begun, cached=True)
            yield cached.text
            return
        with self._under_way(request, begun):
            for item in self.endpoint.stream(request, self._ends_at, self._limits):
                if isinstance(item, Reply):
                    self.endpoint.keep(request, item)
                    self._record(request, item, begun)
                else:
                    yield item

    def recorded(self, case: Case) -> Case:
        """Return a case with the calls of this talk, and the tokens that they used."""
        used = sum(_tokens(call) for call in self.calls)
        whole = replace(case, calls=(*case.calls, *self.calls))
        return whole.spend(self.stage, tokens=used) if used else whole

    @contextlib.contextmanager
    def _under_way(self, request: Request, begun: float) -> Iterator[None]:
        """Hold the tokens of a call while it is made, and record it where it fails."""
        self._reserve(request)
        try:
            yield
        except LLMFault as fault:
            seconds = time.perf_counter() - begun
            model = self.endpoint.settings.model
            call = Call(self.stage, request.prompt, model, seconds, problem=str(fault))
            with self._lock:
                self.calls.append(call)
            raise
        finally:
            with self._lock:
                self._reserved -= request.estimated_tokens

    def _reserve(self, request: Request) -> None:
        """Take the tokens of a call out of what the question may use. Raises `LLMFault` where they are too many."""
        settings = self.endpoint.settings
        with self._lock:
            calls = (*self.case.calls, *self.calls)
            used = sum(_tokens(call) for call in calls) + self._reserved
            cost = sum(self._cost(call) for call in calls)
            wanted = request.estimated_tokens
            if settings.max_tokens and used + wanted > settings.max_tokens:
                raise LLMFault(
                    f"The cap of {settings.max_tokens:,} tokens a question ([llm] max_tokens) is reached."
                )
            next_cost = (wanted * settings.price_in + request.max_tokens * settings.price_out) / 1e6
            if settings.max_cost and cost + next_cost > settings.max_cost:
                raise LLMFault(
                    f"The cap of {settings.max_cost} on a question's cost ([llm] max_cost) is reached."
                )
            self._reserved += wanted

    def _cost(self, call: Call) -> float:
        if call.cached:
            return 0.0
        settings = self.endpoint.settings
        priced = call.tokens_in * settings.price_in + call.tokens_out * settings.price_out
        return priced / 1e6

    def _record(
        self,
        request: Request,
        reply: Reply,
        begun: float,
        *,
        attempts: int = 1,
        cached: bool = False,
        usable: bool = True,
    ) -> None:
        call = Call(
            self.stage,
            request.prompt,
            self.endpoint.model,
            time.perf_counter() - begun,
            reply.tokens_in,
            reply.tokens_out,
            cached,
            attempts,
            "" if usable else _NO_USE,
        )
        with self._lock:
            self.calls.append(call)


def _tokens(call: Call) -> int:
    return 0 if call.cached else call.tokens_in + call.tokens_out


def _end_of_time(endpoint: Endpoint, case: Case, limits: Limits) -> float:
    """Return until when the endpoint may take, in seconds of `time.monotonic`."""
    settings = endpoint.settings
    now = time.monotonic()
    ends = [now + max(settings.timeout, settings.deadline)]
    if settings.deadline:
        ends.append(now + max(0.0, settings.deadline - case.seconds))
    if limits.ends_at is not None:
        left = max(0.0, limits.ends_at - now)
        ends.append(now + (_SHARE * left if settings.fallback else left))
    return min(ends)


def think(
    endpoint: Endpoint,
    stage: str,
    cases: Sequence[Case],
    thought: Callable[[Talk, Case], Case],
    instead: Callable[[Sequence[Case]], list[Case]] | None,
) -> list[Case]:
    """Take each case through a stage. Where the endpoint fails, the embedded default does it, and a note says so."""
    done = []
    for case in cases:
        talk = Talk(endpoint, stage, case)
        try:
            done.append(talk.recorded(thought(talk, case)))
        except LLMFault as fault:
            if instead is None or not endpoint.settings.fallback:
                raise
            (answered,) = instead([talk.recorded(case)])
            done.append(_with_fault(answered, stage, fault))
    return done


def _with_fault(case: Case, stage: str, fault: LLMFault) -> Case:
    """Return the case with a note on what failed, and which stages were done without it. One fault is told once."""
    begin = f"{fault} The embedded model did in its place: "
    notes = []
    stages = []
    for note in case.notes:
        if note.startswith(begin):
            stages.append(note.removeprefix(begin).rstrip("."))
        else:
            notes.append(note)
    told = f"{begin}{', '.join([*stages, stage])}."
    return replace(case, notes=(*notes, told))


# Evidence as prompts show it: a whole passage or a window of it, and the words that an answer stands
# in.

_LONGEST_WINDOW = 180  # words
_LONGEST_EVIDENCE = 50  # words, beside one of several answers


def passage_window(passage: Passage, question: str) -> str:
    """Return a passage with its title, fenced: all of it, or the run of sentences that shares most words with the
    question.
    """
    return fence(f"{passage.title}. {best_window(passage.text, question)}")


def best_window(text: str, question: str, longest: int = _LONGEST_WINDOW) -> str:
    """Return the run of sentences of at most `longest` words that shares most words with a question.

    >>> best_window("It rained. The bridge opened in 1932. It is long.", "When did the bridge open?", longest=5)
    'The bridge opened in 1932.'
    """
    if len(text.split()) <= longest:
        return text
    asked = set(words(question)) - QUESTION_WORDS
    spans = list(sentence_spans(text))
    best, most = text[slice(*spans[0])], -1
    for first, (start, _) in enumerate(spans):
        run = ""
        for _, end in spans[first:]:
            longer = text[start:end]
            if run and len(longer.split()) > longest:
                break
            run = longer
        shared = len(asked & set(words(run)))
        if shared > most:
            best, most = run, shared
    return " ".join(best.split()[:longest])


def evidence_words(span: Span) -> str:
    """Return the sentence that an answer stands in, cut to what is near it, with the passage's title behind it."""
    text = span.passage.text
    start, end = sentence_at(text, span.start)
    before = text[start : span.start].split()
    answer = text[span.start : span.end]
    after = text[span.end : max(end, span.end)].split()
    room = _LONGEST_EVIDENCE // 2
    # A title's answer has no place in the text: its beginning is shown.
    near = " ".join([*before[-room:], answer, *after[:room]])
    return f"{clean(near)} [{clean(span.passage.title)}]"


def answer_lines(answers: Sequence[Candidate], names: Sequence[str]) -> list[str]:
    """Return all answers with the words that they stand in. `names` are their numbers or letters."""
    lines = []
    for name, answer in zip(names, answers, strict=True):
        evidence = evidence_words(answer.spans[0]) if answer.spans else ""
        lines.append(f"{name}. {clean(answer.answer)}: {evidence}")
    return lines


def numbered_answers(answers: Sequence[Candidate]) -> str:
    """Return all answers, numbered from 1, fenced."""
    names = [str(number) for number in range(1, len(answers) + 1)]
    return fence_lines(answer_lines(answers, names), "answers")


def fence_lines(lines: Sequence[str], name: str) -> str:
    """Return lines that are clean already, between two lines with the mark."""
    opening, _, closing = fence("", name).partition("\n\n")
    return "\n".join([opening, *lines, closing])


# JSON out of a reply: as it should be, between fences or prose, with small faults, or cut off in the
# middle.

_LONGEST = 4_000
"""Characters of a reply in which JSON is looked for; no prompt asks for more, and repair takes the square of it."""
_THOUGHTS = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_AROUND = " \t\n\"'`*().:{}[]▁Ġ"  # what may stand around a choice
_LONGEST_CHOICE = 8  # words of a reply that is a choice


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object of a reply, repaired where it has to be; None where there is none.

    >>> parse_object('Sure! ```json\\n{"answers": ["a", "b",],}\\n```')
    {'answers': ['a', 'b']}
    >>> parse_object('{"answered": "yes", "answers": ["Frank Her')
    {'answered': 'yes', 'answers': ['Frank Her']}
    >>> parse_object("I cannot help with that.") is None
    True
    """
    _, brace, rest = without_thoughts(text)[:_LONGEST].partition("{")
    if not brace:
        return None
    try:
        value = require("json_repair", "llm").loads(brace + rest)
    except (ValueError, RecursionError):
        return None
    values = value if isinstance(value, list) else [value]
    return next((each for each in values if isinstance(each, dict)), None)


def without_thoughts(text: str) -> str:
    """Return a reply without what a reasoning model thinks aloud.

    >>> without_thoughts("<think>Hm, yes.</think>yes")
    'yes'
    """
    return _THOUGHTS.sub("", text).strip()


def texts_of(value: Any) -> list[str]:
    """Return the strings of a value that should be a list of them: one string is a list of one, numbers are written
    out.

    >>> texts_of(["Dune ", 1965, None, {"answer": "Arrakis"}]), texts_of("Dune")
    (['Dune', '1965', 'Arrakis'], ['Dune'])
    """
    items = value if isinstance(value, list) else [value]
    texts = []
    for item in items:
        # Some models give [{"answer": "…"}, …].
        own = next(iter(item.values())) if isinstance(item, dict) and item else item
        if isinstance(own, str | int | float) and not isinstance(own, bool):
            text = " ".join(str(own).split())
            if text:
                texts.append(text)
    return texts


def choice_probability(reply: Reply, choices: tuple[str, ...]) -> dict[str, float]:
    """Return the probability of each choice at the first token of a reply that begins one; without log probabilities,
    1 for the choice that the reply names. Empty where it names none.

    >>> choice_probability(Reply("Yes."), ("yes", "no"))
    {'yes': 1.0, 'no': 0.0}
    """
    names = {_choice_form(choice): choice for choice in choices}
    for token in reply.tokens:
        if _choice_form(token.text) in names:
            return _shares(token, names)
    said = re.findall(r"\w+", without_thoughts(reply.text))
    if len(said) > _LONGEST_CHOICE:
        return {}
    for word in said:
        if _choice_form(word) in names:
            return {one: float(one == names[_choice_form(word)]) for one in choices}
    return {}


def _choice_form(text: str) -> str:
    """Return what makes two choices the same. A single letter keeps its case: "a" is an article."""
    bare = text.strip(_AROUND)
    return bare if len(bare) == 1 else bare.lower()


def _shares(token: Token, names: Mapping[str, str]) -> dict[str, float]:
    """Return the probability of each choice among the alternatives of a token."""
    weights = dict.fromkeys(names.values(), 0.0)
    for text, logprob in {token.text: token.logprob, **token.alternatives}.items():
        choice = names.get(_choice_form(text))
        if choice is not None:
            weights[choice] += math.exp(min(0.0, logprob))
    total = sum(weights.values())
    return {choice: weight / total for choice, weight in weights.items()}
