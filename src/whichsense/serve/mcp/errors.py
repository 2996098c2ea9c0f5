"""What a model is told where a tool cannot give what was asked: what is wrong, and what to do."""

from __future__ import annotations

from whichsense.errors import WhichsenseError
from whichsense.serve.problems import Problem

_AGAIN = "Call the tool again once; if it fails again, tell the user that the service has a fault"
# Fixes of the HTTP service that mean nothing to a model, by the kind of problem.
_FIXES = {
    "missing-stage": "Call `ask` with ask_back false, or `search`.",
    "reply": "Reply with one of the options, or ask a new question.",
    "changed": "Call `reply` again.",
    "not-usable": "Ask in other words.",
}


class ToolFault(WhichsenseError):
    """The message is for the model that called the tool."""


def explain_problem(problem: Problem) -> str:
    """A problem of the service in a sentence or two."""
    if problem.kind == "internal":
        log = f" (its log calls this {problem.instance})" if problem.instance else ""
        return f"The service failed at this call. {_AGAIN}{log}."
    return f"{problem.title} {_FIXES.get(problem.kind, problem.fix)}"
