"""Metrics of long answers: ROUGE, Disambig-F1, DR and citations, over NLTK's sentences."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise, starmap

from whichsense.lab.metrics.exact_match import matches, normal_form, token_f1
from whichsense.text.words import porter_stem
from whichsense.types import frozen

# Sentences as NLTK's English Punkt finds them in lower-case text: the input of ASQA's official
# ROUGE-L.
#
# Punkt (Kiss and Strunk, 2006) uses the case of the next word. In lower-cased text a dot ends a
# sentence unless it belongs to a known abbreviation, or to a number or an initial before a lower-case
# word. The word lists are those of the trained English model, distributed with NLTK (Apache License
# 2.0).

_ABBREVIATIONS = frozenset(
    "a.a a.c a.d a.g a.h a.m a.m.e a.s a.t adm ala ariz aug ave b.f b.v bros c c.i.t c.o.m.b c.v calif chg cie co col "
    "colo conn corp cos ct d d.c d.h d.w dec dr e e.f e.h e.l e.m f f.g f.j feb fla fri ft g g.d g.f g.k ga gen h h.c "
    "h.f h.m i.m.s ill inc j.b j.c j.j j.k j.p j.r jan jr k kan ky l l.a l.f l.p lt ltd m m.b.a m.d.c m.j maj messrs "
    "mg mich minn mr mrs ms n n.c n.d n.h n.j n.m n.v n.y nev nov oct ok okla ore p p.a.m p.m pa ph.d prof r r.a r.h "
    "r.i r.j r.k r.t rep reps s s.a s.a.y s.c s.g s.p.a s.s sen sep sept sr st sw t t.j tenn tues u.k u.n u.s u.s.a "
    "u.s.s.r v va vs vt w w.c w.r w.va w.w wash wed wis yr".split()
)
# Words that belong together across a dot, after an initial. (The rule for numbers covers those after a number.)
_COLLOCATIONS = frozenset(
    (
        "b edelman",
        "b levine",
        "b smith",
        "b stewart",
        "b wigton",
        "i magnin",
        "i toussie",
        "j aron",
        "j fialka",
        "j walter",
        "o ludcke",
    )
)
_LOWER_CASE_STARTERS = frozenset(("administrators", "b-week", "r-revised", "z-holiday"))
_PUNCTUATION = frozenset(";:,.!?")

_NOT_IN_WORD = r"""[?!)";}\]*:@'({\[]"""
_RUN = r"-{2,}|\.{2,}|(?:\.\s){2,}\."
_TOKEN = re.compile(
    rf"""{_RUN}
    |(?=[^("`{{\[:;&\#*@)}}\]\-,])\S+?(?=\s|\Z|{_NOT_IN_WORD}|{_RUN}|,(?:\Z|\s|{_NOT_IN_WORD}|{_RUN}))
    |\S""",
    re.VERBOSE,
)
_END = re.compile(rf"[.?!](?=({_NOT_IN_WORD}|\s+(\S+)))")
_NUMBER = re.compile(r"-?[.,]?\d[\d,.\-]*\.?\Z")
_INITIAL = re.compile(r"[^\W\d]\.\Z")
_CLOSING = re.compile(r"""["')\]}]+?(?:\s+|(?=--)|$)""", re.MULTILINE)


def sentences(text: str) -> list[str]:
    """Return the sentences of a lower-cased text.

    >>> sentences('it came out in the u.s. in 1977. then "jaws 2" followed! (so did others.) dr. no was first.')
    ['it came out in the u.s. in 1977. then "jaws 2" followed!', '(so did others.)', 'dr. no was first.']
    """
    return [text[start:end] for start, end in spans(text)]


def spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each sentence of a lower-cased text.

    >>> spans("it ended. it began.")
    [(0, 9), (10, 19)]
    """
    return _realign_closings(text, _raw_spans(text))


def _raw_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each sentence, before closing quotes are moved."""
    raw = []
    start = 0
    for word_start, mark in _candidate_ends(text):
        context = text[word_start : mark.end()] + mark[1]
        if _has_sentence_end(context):
            raw.append((start, mark.end()))
            start = mark.start(2) if mark[2] else mark.end()
    raw.append((start, len(text.rstrip())))
    return raw


def _candidate_ends(text: str) -> list[tuple[int, re.Match[str]]]:
    """Marks that may end a sentence, each with the start of the word before. Of marks in a row the last counts."""
    candidates: list[tuple[int, re.Match[str]]] = []
    previous_word = previous_mark = 0
    for mark in _END.finditer(text):
        gap = _last_space(text[previous_mark : mark.start()])
        word = previous_mark + gap + 1 if gap else previous_word
        if candidates and previous_mark > word:
            candidates.pop()
        candidates.append((word, mark))
        previous_word, previous_mark = word, mark.start()
    return candidates


def _last_space(text: str) -> int:
    """Return the position of the last white space; 0 where there is none."""
    for position in range(len(text) - 1, -1, -1):
        if text[position].isspace():
            return position
    return 0


def _has_sentence_end(context: str) -> bool:
    """Tell whether a sentence ends between two tokens of the context."""
    return any(starmap(_ends_sentence, pairwise(_TOKEN.findall(context))))


def _ends_sentence(token: str, following: str) -> bool:
    if token in (".", "?", "!"):
        return True
    if not token.endswith(".") or token.endswith(".."):
        return False
    word = token[:-1]
    # Of a hyphenated word, the last part counts.
    if word in _ABBREVIATIONS or word.rpartition("-")[2] in _ABBREVIATIONS:
        return False
    if _INITIAL.match(token):
        return f"{word} {following}" not in _COLLOCATIONS and _begins(following)
    return not _NUMBER.match(token) or _begins(following)


def _begins(following: str) -> bool:
    """Tell whether a sentence may begin with this token."""
    if following in _PUNCTUATION:
        return False
    return not following[0].islower() or following in _LOWER_CASE_STARTERS


def _realign_closings(text: str, raw: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Move closing quotes and brackets back to the sentence that they close."""
    aligned = []
    moved = 0  # characters that the sentence before has taken
    for number, (start, stop) in enumerate(raw):
        begin = start + moved
        end = stop
        moved = 0
        if number + 1 < len(raw):
            next_start, next_end = raw[number + 1]
            closing = _CLOSING.match(text[next_start:next_end])
            if closing:
                end = next_start + len(closing[0].rstrip())
                moved = len(closing[0])
        if text[begin:end]:
            aligned.append((begin, end))
    return aligned


# Citations of a long answer: ALCE's recall and precision, as its script computes them.
#
# The script splits the text with its citations, "… in 1977 [1][3].", into Punkt sentences. The first
# three citations of a sentence count. Their documents together must entail the sentence, without its
# citations: that is recall. Where they do, a citation is precise if it is the only one, entails the
# sentence alone, or cannot be left out. The judge of entailment is an argument, and every figure
# depends on it.

Judge = Callable[[str, str], bool]
"""Whether a text (the first argument) supports a sentence (the second)."""

_CITATION = re.compile(r"\[(\d+)")
_CITATION_AND_SPACE = re.compile(r" ?\[\d+")
_MOST = 3  # citations of a sentence that count
_CITATIONS_END = ".!?\"'”’)"


@frozen
class CitedDocument:
    """A document that is cited by its number."""

    title: str
    text: str


@frozen
class CitationScores:
    """Recall: the share of sentences that their citations support. Precision: the share of citations that help."""

    recall: float
    precision: float


def citation_scores(
    text: str, documents: Sequence[CitedDocument], entails: Judge
) -> CitationScores | None:
    """Score one answer, in which "[1]" cites the first document; None for an answer without a sentence, which ALCE
    leaves out.

    >>> documents = [CitedDocument("Film", "it opened in 1977"), CitedDocument("Play", "it closed")]
    >>> supports = lambda document, sentence: sentence.rstrip(".").lower() in document
    >>> citation_scores("It opened in 1977 [1][2]. It closed [1]. It won.", documents, supports)
    CitationScores(recall=0.3333333333333333, precision=0.3333333333333333)
    """
    supported = precise = cited = 0
    text = text.strip().partition("\n")[0]  # ALCE reads the first line
    sentences = [text[start:end] for start, end in spans(_lowered(text))]
    if not sentences:
        return None
    for sentence in sentences:
        # As released, [0] counts backwards: it cites the last document.
        places = [int(number) - 1 for number in _CITATION.findall(sentence)]
        if max(places, default=len(documents)) >= len(documents):
            continue
        places = places[:_MOST]
        cited += len(places)
        passages = [_passage(documents[place]) for place in places]
        claim = remove_citations(sentence).strip()
        if entails("\n".join(passages), claim):
            supported += 1
            precise += _precise(passages, claim, entails)
    precision = precise / cited if cited else 0.0
    return CitationScores(supported / len(sentences), precision)


def _lowered(text: str) -> str:
    """Return the text in lower case, letter by letter, so that places stay the same."""
    return "".join(map(_lower, text))


def _lower(letter: str) -> str:
    lower = letter.lower()
    return lower if len(lower) == 1 else letter


def _passage(document: CitedDocument) -> str:
    return f"Title: {document.title}\n{document.text}"


def _precise(passages: Sequence[str], claim: str, entails: Judge) -> int:
    """Return how many of the passages that together entail a claim entail it alone or cannot be left out."""
    if len(passages) == 1:
        return 1
    precise = 0
    for passage in passages:
        others = list(passages)
        others.remove(passage)  # of a passage that is cited twice, one
        precise += entails(passage, claim) or not entails("\n".join(others), claim)
    return precise


def remove_citations(text: str) -> str:
    """Return the text without its citations, as ALCE's script removes them.

    >>> remove_citations("It opened in 1977 [1][3].")
    'It opened in 1977.'
    """
    return _CITATION_AND_SPACE.sub("", text).replace(" |", "").replace("]", "")


def with_citations(sentence: str, numbers: Sequence[int]) -> str:
    """Return a sentence with citations before its final mark, as ALCE's answers have them.

    >>> with_citations("It opened in 1977.", [1, 3]), with_citations('He said "no."', [2])
    ('It opened in 1977 [1][3].', 'He said "no [2]."')
    """
    if not numbers:
        return sentence
    body = sentence.rstrip(_CITATIONS_END)
    marks = "".join(f"[{number}]" for number in numbers)
    return f"{body} {marks}{sentence[len(body) :] or '.'}"


# ROUGE-L over whole texts: `rougeLsum` of the `rouge-score` package with its stemmer, but faster.

_WORD = re.compile("[a-z0-9]+")

_Words = tuple[str, ...]


def _stems(text: str) -> _Words:
    """Return lower-case ASCII words; those over three letters are stemmed.

    >>> _stems("It was filmed in Toruń's studios.")
    ('it', 'was', 'film', 'in', 'toru', 's', 'studio')
    """
    stems = [porter_stem(word) if len(word) > 3 else word for word in _WORD.findall(text.lower())]
    return tuple(stems)


@lru_cache(maxsize=2**13)
def _stemmed_sentences(text: str) -> tuple[_Words, ...]:
    stemmed = [
        _stems(line)
        for sentence in sentences(text.lower())
        for line in sentence.split("\n")
        if line
    ]
    return tuple(stemmed)


def rouge_l(reference: str, prediction: str) -> float:
    """Return F1 of the words of each reference sentence that occur in the prediction's sentences in the same order.

    >>> round(rouge_l("It came out in 1977. A sequel followed.", "A sequel followed. It came in 1978."), 4)
    0.8
    """
    return rouge_l_scores(reference, prediction)[2]


def rouge_l_scores(reference: str, prediction: str) -> tuple[float, float, float]:
    """Precision, recall and F1."""
    gold = _stemmed_sentences(reference)
    predicted = _stemmed_sentences(prediction)
    gold_size = sum(map(len, gold))
    predicted_size = sum(map(len, predicted))
    if not gold_size or not predicted_size:
        return 0.0, 0.0, 0.0
    # How often each word may still be counted: no more often than it occurs on either side.
    free_gold = _count_words(gold)
    free_predicted = _count_words(predicted)
    hits = 0
    for sentence in gold:
        for word in _union_of_subsequences(sentence, predicted):
            if free_predicted[word] > 0 and free_gold[word] > 0:
                hits += 1
                free_predicted[word] -= 1
                free_gold[word] -= 1
    if not hits:
        return 0.0, 0.0, 0.0
    precision = hits / predicted_size
    recall = hits / gold_size
    return precision, recall, 2 * precision * recall / (precision + recall)


def _count_words(text: tuple[_Words, ...]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for sentence in text:
        counts.update(sentence)
    return counts


def _union_of_subsequences(sentence: _Words, others: Sequence[_Words]) -> list[str]:
    """Return the words of a sentence that are in the longest common subsequence with any of the others."""
    words = set(sentence)
    covered: set[int] = set()
    for other in others:
        if not words.isdisjoint(other):
            covered.update(_common_positions(sentence, other))
    return [sentence[position] for position in sorted(covered)]


def _common_positions(gold: Sequence[str], predicted: Sequence[str]) -> list[int]:
    """The positions in `gold` of a longest common subsequence. Of several, the one that `rouge-score` reads out."""
    # lengths[i][j]: the length of the longest common subsequence of gold[:i] and predicted[:j].
    lengths = [[0] * (len(predicted) + 1)]
    for word in gold:
        above = lengths[-1]
        row = [0]
        left = 0
        for j, other in enumerate(predicted):
            if word == other:
                left = above[j] + 1
            elif above[j + 1] > left:
                left = above[j + 1]
            row.append(left)
        lengths.append(row)
    positions = []
    i, j = len(gold), len(predicted)
    while i and j:
        if gold[i - 1] == predicted[j - 1]:
            positions.append(i - 1)
            i -= 1
            j -= 1
        elif lengths[i][j - 1] > lengths[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return positions


# ASQA's metrics for long answers: ROUGE-L, STR-EM, Disambig-F1 and DR, length.
#
# The official ROUGE-L has two rules. Since December 2022: the better of the two references for each
# question (`rouge_l_best`). Before: each reference over the whole set, and the better of the two
# averages (`rouge_l_better_average`). The official script prints the middle of a bootstrap, not the
# mean: see `bootstrap.middle`.

Reader = Callable[[Sequence[tuple[str, str]]], Sequence[str]]
"""Answers (question, text) pairs with a span of the text each, or with an empty string."""


@frozen
class Disambiguation:
    """One unambiguous question and the names of its short answer."""

    question: str
    aliases: tuple[str, ...]


@frozen
class ReaderScores:
    """A reader's answers from a long answer: Disambig-F1, QA-EM, and whether every question got its answer."""

    disambig_f1: float
    qa_em: float
    qa_hit: float


def rouge_l_best(references: Sequence[str], prediction: str) -> float:
    """Return ROUGE-L against the better reference.

    >>> rouge_l_best(["It opened in 1977.", "The opening was in 1977."], "It opened in 1977.")
    1.0
    """
    return max(rouge_l(reference, prediction) for reference in references)


def rouge_l_better_average(scores: Sequence[Sequence[float]]) -> float:
    """Apply the older rule to each question's scores against each reference.

    >>> rouge_l_better_average([(0.5, 0.25), (0.25, 1.0)])
    0.625
    """
    # one per reference
    averages: list[float] = [sum(column) / len(column) for column in zip(*scores, strict=True)]
    return max(averages)


def str_em(answers: Sequence[Sequence[str]], prediction: str) -> float:
    """Return the share of short answers that the long answer holds: a normalized alias is a substring of it.

    >>> str_em([["5"], ["Carrie Fisher", "Fisher"]], "It came out in 1995, with Ford.")
    0.5
    """
    text = normal_form(prediction)
    held = 0
    for aliases in answers:
        forms = map(normal_form, aliases)
        held += any(form in text for form in forms)
    return held / len(answers)


def reader_scores(
    questions: Sequence[Disambiguation], short_answers: Sequence[str]
) -> ReaderScores:
    """Return how well the answers that a reader took from a long answer agree with the gold ones.

    >>> questions = [Disambiguation("When did it open?", ("1977",)), Disambiguation("Who led?", ("Ann Lee", "Lee"))]
    >>> reader_scores(questions, ["1977", "Ann"])
    ReaderScores(disambig_f1=0.8333333333333333, qa_em=0.5, qa_hit=0.0)
    """
    f1 = []
    em = []
    for question, answer in zip(questions, short_answers, strict=True):
        # The best alias counts.
        f1.append(max(token_f1(answer, alias) for alias in question.aliases))
        em.append(matches(answer, question.aliases))
    return ReaderScores(
        disambig_f1=sum(f1) / len(f1), qa_em=sum(em) / len(em), qa_hit=float(all(em))
    )


def read_all(
    questions: Sequence[Sequence[Disambiguation]], predictions: Sequence[str], reader: Reader
) -> list[ReaderScores]:
    """Let a reader answer every disambiguated question from the long answers, in one call, and score it."""
    pairs = [
        (disambiguation.question, text)
        for group, text in zip(questions, predictions, strict=True)
        for disambiguation in group
    ]
    answers = reader(pairs)
    scores = []
    start = 0  # of the group's answers
    for group in questions:
        end = start + len(group)
        scores.append(reader_scores(group, answers[start:end]))
        start = end
    return scores


def dr(disambig_f1: float, rouge: float) -> float:
    """Return the geometric mean of both.

    >>> dr(0.25, 0.36)
    0.3
    """
    return math.sqrt(disambig_f1 * rouge)


def length(prediction: str) -> int:
    """Return the number of words between white space.

    >>> length("It opened in 1977.")
    4
    """
    return len(prediction.split())
