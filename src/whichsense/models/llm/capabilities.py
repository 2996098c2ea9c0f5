"""What is asked of a server, less what it has refused; and its completions as our record."""

from __future__ import annotations

from typing import Any

from whichsense.models.llm.exchange import Reply, Request, Token
from whichsense.models.llm.fences import draw_mark, with_mark
from whichsense.models.llm.settings import LLMSettings

# What a server may refuse, with the words by which it says so. The order is that in which they are left out where it
# does not say what it refuses.
_REFUSALS = {
    "structured": ("response_format", "json_schema", "schema", "grammar", "structured"),
    "logprobs": ("logprob",),
    "max_tokens": ("max_tokens", "max_completion_tokens"),
    "temperature": ("temperature",),
    "seed": ("seed",),
}
_SAID_ALONE = ("max_tokens", "temperature", "seed")  # left out only if they are named


class Capabilities:
    """What a server can do, as far as it is known: everything, until it refuses."""

    def __init__(self, settings: LLMSettings) -> None:
        self.settings = settings
        self._refused: set[str] = set()

    def parameters(self, request: Request, model: str) -> dict[str, Any]:
        """What the official client is called with. Each call draws a mark of its own."""
        mark = draw_mark()
        parameters: dict[str, Any] = {
            "model": model,
            "messages": [
                {"role": "system", "content": with_mark(request.system, mark)},
                {"role": "user", "content": with_mark(request.user, mark)},
            ],
            "extra_body": dict(self.settings.extra),
        }
        refused = self._refused
        limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        parameters[limit] = request.max_tokens
        if "temperature" not in refused:
            parameters["temperature"] = request.temperature
        if "seed" not in refused and request.temperature:
            parameters["seed"] = request.seed
        if self._uses("structured", request):
            schema = {"name": request.prompt, "strict": True, "schema": request.schema}
            parameters["response_format"] = {
                "type": "json_schema",
                "json_schema": schema,
            }
        if self._uses("logprobs", request):
            parameters |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        return parameters

    def _uses(self, feature: str, request: Request) -> bool:
        """Whether a request has this of what a server may refuse, and it is not refused yet."""
        if feature in self._refused:
            return False
        if feature == "structured":
            return request.schema is not None and self.settings.structured != "off"
        if feature == "logprobs":
            return request.top_logprobs > 0 and self.settings.logprobs != "off"
        return feature != "seed" or request.temperature > 0

    def leave_out(self, request: Request, message: str) -> bool:
        """Whether something is left out from now on, after the server has refused a request with this message."""
        fixed = {
            "structured": self.settings.structured,
            "logprobs": self.settings.logprobs,
        }
        used = [name for name in _REFUSALS if self._uses(name, request)]
        used = [name for name in used if fixed.get(name) != "on"]
        lowered = message.lower()
        named = [name for name in used if any(w in lowered for w in _REFUSALS[name])]
        unnamed = [name for name in used if name not in _SAID_ALONE]
        refused = (named or unnamed)[:1]
        self._refused.update(refused)
        return bool(refused)


def reply_of(completion: Any) -> Reply:
    """What the client gives as our record. Raises ValueError for what is no completion."""
    try:
        choice = completion.choices[0]
        text = choice.message.content or ""
        content = choice.logprobs.content if choice.logprobs else None
        usage = completion.usage
        return Reply(
            str(text),
            tuple(_token_of(item) for item in content or ()),
            int(usage.prompt_tokens) if usage else 0,
            int(usage.completion_tokens) if usage else len(text) // 4,
        )
    except (AttributeError, IndexError, TypeError) as error:
        raise ValueError("this is no chat completion") from error


def _token_of(item: Any) -> Token:
    alternatives = {}
    for other in item.top_logprobs or ():
        alternatives[str(other.token)] = float(other.logprob)
    return Token(str(item.token), float(item.logprob), alternatives)
