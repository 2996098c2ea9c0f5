"""The records that flow between the stages: frozen and typed. `Case` holds all of them."""

from whichsense.types.case import (
    FOR_BENCHMARKS,
    FOR_PEOPLE,
    Call,
    Case,
    Cost,
    Policy,
    ServedCase,
)
from whichsense.types.corpus import (
    Document,
    Hit,
    Method,
    Passage,
    Redirect,
    Sense,
    Span,
)
from whichsense.types.readings import (
    AskedAgain,
    Candidate,
    Citation,
    Clarification,
    LongAnswer,
    Option,
    Reading,
    is_tentative,
)

__all__ = [
    "FOR_BENCHMARKS",
    "FOR_PEOPLE",
    "AskedAgain",
    "Call",
    "Candidate",
    "Case",
    "Citation",
    "Clarification",
    "Cost",
    "Document",
    "Hit",
    "LongAnswer",
    "Method",
    "Option",
    "Passage",
    "Policy",
    "Reading",
    "Redirect",
    "Sense",
    "ServedCase",
    "Span",
    "is_tentative",
]
