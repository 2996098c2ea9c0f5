"""Evidence as prompts show it: a whole passage or a window of it, and the words that an answer stands in."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.models.llm.fences import clean, fence
from whichsense.text.function_words import QUESTION_WORDS
from whichsense.text.sentences import sentence_at, sentence_spans
from whichsense.text.words import words
from whichsense.types import Candidate, Passage, Span

_LONGEST_WINDOW = 180  # words
_LONGEST_EVIDENCE = 50  # words, beside one of several answers


def passage_window(passage: Passage, question: str) -> str:
    """A passage with its title, fenced: all of it, or the run of sentences that shares most words with the question."""
    return fence(f"{passage.title}. {best_window(passage.text, question)}")


def best_window(text: str, question: str, longest: int = _LONGEST_WINDOW) -> str:
    """The run of sentences of at most `longest` words that shares most words with a question.

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
    """The sentence that an answer stands in, cut to what is near it, with the passage's title behind it."""
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
    """All answers with the words that they stand in. `names` are their numbers or letters."""
    lines = []
    for name, answer in zip(names, answers, strict=True):
        evidence = evidence_words(answer.spans[0]) if answer.spans else ""
        lines.append(f"{name}. {clean(answer.answer)}: {evidence}")
    return lines


def numbered_answers(answers: Sequence[Candidate]) -> str:
    """All answers, numbered from 1, fenced."""
    names = [str(number) for number in range(1, len(answers) + 1)]
    return fence_lines(answer_lines(answers, names), "answers")


def fence_lines(lines: Sequence[str], name: str) -> str:
    """Lines that are clean already, between two lines with the mark."""
    opening, _, closing = fence("", name).partition("\n\n")
    return "\n".join([opening, *lines, closing])
