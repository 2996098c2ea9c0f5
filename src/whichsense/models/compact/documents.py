"""Documents that disagree: each is read by itself, then what they say is settled."""

from __future__ import annotations

from whichsense.jobs.limits import check_limits
from whichsense.models.compact.conflicts import Statement, settle
from whichsense.models.compact.rewrite.resolving import candidates_of
from whichsense.models.compact.scene import Compact
from whichsense.types import Candidate, Case, Hit, Span


def read_each(
    compact: Compact, case: Case, least: float, similar: float
) -> list[Candidate]:
    """The answers that stand, those of most documents first. A document gives its best answer, if that is at least
    `least` probable; `similar` is what `settle` takes for documents about the same thing."""
    statements = []
    spans: dict[str, tuple[Span, ...]] = {}  # by document
    for hit in case.hits:
        best = _best_answer(compact, case.question, hit)
        if best is not None and best.score >= least:
            text = hit.passage.text
            statements.append(Statement(best.answer, best.score, text))
            spans[text] = best.spans
    answers = []
    for group in settle(statements, similar):
        own: list[Span] = []
        for statement in group:
            own += spans[statement.document]
        first = group[0]
        answers.append(Candidate(first.answer, first.confidence, tuple(own)))
    return answers


def _best_answer(compact: Compact, question: str, hit: Hit) -> Candidate | None:
    check_limits()
    scene = compact.over(1).read_given(question, [hit])
    best = candidates_of(scene, scene.apart[:1])
    return best[0] if best else None
