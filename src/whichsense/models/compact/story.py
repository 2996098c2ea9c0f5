"""Long answers: what is known of each reading, told in sentences that stand alone, composed into a paragraph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice

from whichsense.models.compact import statements
from whichsense.models.compact.mentions import (
    is_same_kind,
    restore_capitals,
    split_title,
    stand_alone,
    work_of,
)
from whichsense.models.compact.statements import (
    Statement,
    has_verb,
    join,
    list_statements,
    parse_question,
    statement,
)
from whichsense.protocols import Support
from whichsense.text.answers import parse_date
from whichsense.text.words import (
    EDIT_STOP_WORDS,
    WH_WORDS,
    porter_stem,
    sentence_at,
    sentence_spans,
    spans_of,
    words,
)
from whichsense.types import Case, Citation, LongAnswer, Passage, Reading, Span

# The sentences of a passage that can be told: clean, whole, standing alone, shortened by cuts that
# leave them true.

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>|&[a-z]{2,8};")
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]"
)
_NOTE = re.compile(r"\[(?:\d{1,3}|[a-z]|citation needed|note \d+)\]")
_LOOSE_OWNER = re.compile(r" (['’]s|n['’]t)\b")
_BEFORE_MARK = re.compile(r"\s+([,;.])(?=\s|$)")
_ENDS = re.compile(r"[.!?][\"'”’)\]]*$")
# A dot that ends no sentence.
_ABBREVIATION = re.compile(
    r"\b(?:Art|Sec|Fig|Op|Ch|pp?|feat|vs|al|Nos?|Vol|St|Mr|Mrs|Dr|[A-Z])\.$"
)
_ODD = re.compile(r"https?:|www\.|[|{}<>\\=_~^*]|\.\.\.|…|\b\w{40,}")
_BEGINS = re.compile(r"(?:The|An?|In|On|At|It|He|She|They|This|These|There) [a-z]")
_SHORTEST, _LONGEST = 4, 70  # words
_MOST_SENTENCES = 40
_PARENTHESES = re.compile(r" ?\([^()]*\)| ?\[[^\[\]]*\]")
_OPENER = re.compile(
    r"(?:However|Moreover|Furthermore|Additionally|In addition|Also|Therefore|Thus|Hence|Nevertheless|Nonetheless"
    r"|For example|For instance|In fact|Indeed|Meanwhile|Consequently|As a result|Similarly|Likewise|Finally"
    r"|Notably|In particular|Interestingly|Instead|Still|Then|But|And|So|Yet)\b,? "
)
# A phrase between commas behind a name: ", an American actor," before the verb.
_APPOSITION = re.compile(
    r"(?<=[\w’'.\"”]),"
    r" (?:an? |the |who |whose |which |born |formerly |originally |also known as |also called |then |now )"
    r"[^,;:()]{3,120},(?= (?P<next>[a-z]+) )"
)
# Where the last clause begins that a sentence can do without.
_TRAILING = re.compile(
    r"(?:, (?:which|while|although|though|whereas|where|who|whose|making|becoming|including|with|after|before|despite"
    r"|as well as|because|since|so that|followed by|leading|causing|allowing|having|being|using|featuring|starring"
    r"|replacing|(?:and|but) (?:he|she|it|they|the|his|her|its|their|was|were|is|are|has|had|also|later|then"
    r"|[a-z]+ed))\b|; | – | — )"
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence of a passage that stands alone."""

    text: str
    passage: Passage
    start: int
    end: int

    def holds(self, place: int) -> bool:
        """Whether the character at a place of the passage is in the sentence."""
        return self.start <= place < self.end


@lru_cache(maxsize=256)
def facts(passage: Passage) -> tuple[Fact, ...]:
    """Every sentence of a passage that can be told, in order."""
    spans = list(islice(sentence_spans(passage.text), _MOST_SENTENCES))
    texts = [clean(passage.text[start:end]) for start, end in spans]
    texts[:1] = [_without_heading(text, passage.title) for text in texts[:1]]
    told = []
    for place, (start, end) in enumerate(spans):
        if not is_whole(texts[place]):
            continue
        text = stand_alone(passage, texts, place)
        if text:
            told.append(Fact(text, passage, start, end))
    return tuple(told)


def _without_heading(text: str, title: str) -> str:
    """The first sentence without the title that some corpora put before it.

    >>> _without_heading("Al Lee Albert Lee was a singer.", "Al Lee (singer)")
    'Albert Lee was a singer.'
    >>> _without_heading("Farm policy The aim of farms is food.", "Farm policy")
    'The aim of farms is food.'
    """
    name, _ = split_title(clean(title))
    for heading in (clean(title), name):
        if not heading or not text.lower().startswith(heading.lower() + " "):
            continue
        rest = text[len(heading) :].lstrip()
        opening = rest.lower().split()[: len(heading.split()) + 3]
        repeats_name = heading.lower().split()[-1] in opening
        if rest[0].isupper() and (repeats_name or _BEGINS.match(rest)):
            return rest
    return text


def is_whole(text: str) -> bool:
    """Whether a text is one whole sentence, and no heading, row of a table or fragment.

    >>> is_whole("It was released in 1989."), is_whole("released in 1989."), is_whole("Cast and crew.")
    (True, False, False)
    """
    count = len(text.split())
    if not _SHORTEST <= count <= _LONGEST or not _ENDS.search(text):
        return False
    if _ABBREVIATION.search(text):
        return False
    if not (text[0].isupper() or text[0].isdigit() or text[0] in "\"“'‘"):
        return False
    if _ODD.search(text) or text.count('"') % 2 or text.count("(") != text.count(")"):
        return False
    label, colon, rest = text.partition(": ")
    is_row = bool(colon) and not (has_verb(label) and has_verb(rest))
    return not is_row and not text.endswith("?") and has_verb(text)


def clean(text: str) -> str:
    """A piece of a passage on one line, without tags, control characters and numbers of notes.

    >>> clean('He <b>won</b>\\x07 it[3] , in ""1989"" .')
    'He won it, in "1989".'
    """
    plain = _TAG.sub(" ", _CONTROL.sub("", text.replace("&amp;", "&")))
    plain = _NOTE.sub("", plain).replace('""', '"').replace("``", '"')
    plain = plain.replace("''", '"')
    plain = _LOOSE_OWNER.sub(r"\1", " ".join(plain.split()))
    return _BEFORE_MARK.sub(r"\1", plain)


def compress(sentence: str, needed: Sequence[str], longest: int) -> str:
    """The sentence with as few cuts as bring it to `longest` words; parentheses go in any case.

    Phrases of `needed` are never cut. A cut that would leave no verb is not made.

    >>> text = "Batman, a film by Tim Burton, opened (in the US) in 1989, which was a good year for such films."
    >>> compress(text, ["1989"], 8)
    'Batman opened in 1989.'
    >>> compress(text, ["1989", "good year"], 30)
    'Batman, a film by Tim Burton, opened in 1989, which was a good year for such films.'
    """
    shorter = _without_parentheses(_without_opener(sentence), needed)
    while len(shorter.split()) > longest:
        for candidate in _cut(shorter):
            if _is_allowed(candidate, shorter, needed):
                shorter = candidate
                break
        else:
            break
    return shorter


def _without_opener(sentence: str) -> str:
    match = _OPENER.match(sentence)
    if not match:
        return sentence
    rest = sentence[match.end() :]
    return rest[:1].upper() + rest[1:]


def _without_parentheses(sentence: str, needed: Sequence[str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        holds_needed = any(phrase in match[0] for phrase in needed if phrase)
        return match[0] if holds_needed else ""

    return " ".join(_PARENTHESES.sub(replacement, sentence).split()).replace(" ,", ",")


def _cut(sentence: str) -> Iterator[str]:
    """The sentence with one cut, the gentlest first: trailing clauses from the last on, then appositions."""
    for match in reversed(list(_TRAILING.finditer(sentence))):
        yield sentence[: match.start()].rstrip(" ,;") + "."
    for match in _APPOSITION.finditer(sentence):
        if has_verb(f"it {match['next']}"):
            yield sentence[: match.start()] + sentence[match.end() :]


def _is_allowed(candidate: str, sentence: str, needed: Sequence[str]) -> bool:
    """Whether a cut leaves a whole sentence with everything that is needed."""
    if len(candidate) >= len(sentence) or len(words(candidate)) < 4:
        return False
    for phrase in needed:
        if phrase in sentence and phrase not in candidate:
            return False
    is_balanced = candidate.count('"') % 2 == 0
    return is_balanced and has_verb(candidate)


# What is told of one reading: its answer in a sentence, and facts that go with it.

# Of answers over Wikipedia readers found half of the statements supported that reach .5, three in four from .9 on, and
# all but one of 21 from .95 on.
_LEAST_SUPPORT = 0.95
_LEAST_SUPPORT_OF_SURE = 0.5  # where the reading itself is sure
_SURE = 0.6
# "The" inside a question that begins no name: "The British version".
_LOOSE_ARTICLE = re.compile(
    rf"(?<=[a-z] )The(?= (?:[a-z\d]|(?:{'|'.join(sorted(statements.NATIONAL_ADJECTIVES))}) [a-z]))"
)
_NAMED = re.compile(r"[A-Z]\w*|\d+")
_NEAREST = 10  # passages in which names of the question are looked for
_NEAREST_READ = 5  # passages whose sentences are told where too little else is
_SPANS = 3  # of an answer's evidence that are looked at
_AROUND = 200  # characters before the sentence with the answer
_LEAST_NEAR = 0.6  # share of the rewrite's words that stand near the answer
_OWN = 0.2  # added to the share of the sentence in which the answer was found
_LEAST_RELEVANT = 0.2  # share of the rewrite's words in a sentence that answers it
_LEAST_FLUENT = 0.3
_LONGEST_FACT = 30  # words, where cuts allow it
_MOST_WORDS = 45  # words of a fact in any case
_LEAST_SHARED = 2  # content words of the rewrite that a fact has at least
_SAME = 0.75  # share of a statement's words that a fact which says the same has
_LEAST_NEW = 0.5  # share of a fact's words that the text before must not have
_LEAST_NEW_WITH_ANSWER = 0.35


@dataclass(frozen=True, slots=True)
class Telling:
    """One reading with everything that may be told of it."""

    reading: Reading
    stated: Statement | None
    """The answer as a statement, if its passage supports it."""
    passage: Passage
    """What supports the statement, or where the answer stands."""
    answer_fact: Fact | None
    """The sentence of the evidence that holds the answer, shortened."""
    is_relevant: bool
    """Whether that sentence speaks of what the rewrite asks."""
    context: tuple[Fact, ...]
    """Other sentences about it, the nearest first."""

    @property
    def is_attributed(self) -> bool:
        """Whether no sentence holds the answer in a form that can be told."""
        has_fact = self.answer_fact is not None and self.is_relevant
        return self.stated is None and not has_fact

    @property
    def sentence(self) -> tuple[str, Passage]:
        """The answer in one sentence, and what supports it."""
        if self.stated is not None and not self._says_fact():
            return self.stated.text, self.passage
        if self.answer_fact is not None and self.is_relevant:
            return self.answer_fact.text, self.answer_fact.passage
        return attributed([self.reading], self.passage), self.passage

    def adds(self, fact: Fact, told: frozenset[str]) -> bool:
        """Whether a fact says enough that the text before, of which `told` are the stems, does not."""
        least = _LEAST_NEW_WITH_ANSWER if fact is self.answer_fact else _LEAST_NEW
        return says_more(fact.text, told, least)

    def _says_fact(self) -> bool:
        """Whether the sentence of the evidence says what the statement says: it then stands alone."""
        if self.answer_fact is None or self.stated is None:
            return False
        names = set(_NAMED.findall(self.stated.text[1:]))
        if not names <= set(_NAMED.findall(self.answer_fact.text)):
            return False
        stated = content_stems(self.stated.text)
        shared = stated & content_stems(self.answer_fact.text)
        return len(shared) >= _SAME * len(stated)


def attributed(readings: Sequence[Reading], passage: Passage) -> str:
    """Say the answers, each with its label, by the title of the passage in which they were found.

    >>> readings = [Reading("When?", "1989", label="in Malta"), Reading("When?", "1990")]
    >>> attributed(readings, Passage("1", "Dates", ""))
    'The answers found in “Dates” are 1989 (in Malta) and 1990.'
    """
    title = clean(passage.title)
    names = []
    for reading in readings:
        label = f" ({clean(reading.label)})" if reading.label else ""
        names.append(f"{clean(reading.answer)}{label}")
    if len(names) > 1:
        where = f" in “{title}”" if title else ""
        return f"The answers found{where} are {join(names)}."
    # A passage about the answer has it for its title.
    where = f", in “{title}”" if title and title != names[0] else ""
    return f"The answer found is {names[0]}{where}."


def tell(case: Case, reading: Reading, support: Support) -> Telling | None:
    """What can be told of a reading; None where nothing holds its answer."""
    spans = reading.evidence or spans_of(reading.answer, case.hits)
    if not spans:
        return None
    spans = spans[:_SPANS]
    answer_fact, share = _answer_fact(reading, spans)
    is_relevant = share >= _LEAST_RELEVANT
    nearest = [hit.passage for hit in case.hits[:_NEAREST]]
    question = restore_capitals(
        reading.question, [*(span.passage for span in spans), *nearest], case.question
    )
    question = _LOOSE_ARTICLE.sub("the", question)
    stated, passage = _supported_statement(question, reading, spans, support)
    context = _context(reading, spans, answer_fact)
    return Telling(reading, stated, passage, answer_fact, is_relevant, tuple(context))


def _supported_statement(
    question: str, reading: Reading, spans: Sequence[Span], support: Support
) -> tuple[Statement | None, Passage]:
    """The rewrite with its answer, and the first passage that supports it."""
    first = spans[0].passage
    again = reading.asked_again
    if again is not None and not reading.source and 0 < again.fluent < _LEAST_FLUENT:
        return None, first
    stated = statement(question, reading.answer, spans[0])
    if stated is None:
        return None, first
    near = [span for span in spans if _is_near(reading, span)]
    pairs = [(stated.text, evidence_text(span.passage)) for span in near]
    is_sure = reading.confidence >= _SURE
    least = _LEAST_SUPPORT_OF_SURE if is_sure else _LEAST_SUPPORT
    for span, chance in zip(near, support.supports(pairs), strict=True):
        if chance >= least:
            return stated, span.passage
    return None, first


def _is_near(reading: Reading, span: Span) -> bool:
    """Whether the title and the sentences around the answer speak of what the rewrite asks."""
    asked = content_stems(reading.question) - content_stems(reading.answer)
    text = span.passage.text
    start, end = sentence_at(text, span.start)
    around = text[max(0, start - _AROUND) : end + _AROUND // 2]
    shared = asked & content_stems(f"{span.passage.title} {around}")
    return len(shared) >= _LEAST_NEAR * len(asked)


def evidence_text(passage: Passage) -> str:
    """A passage as the judge of support reads it."""
    return f"{passage.title}\n{passage.text}"


def _answer_fact(reading: Reading, spans: Sequence[Span]) -> tuple[Fact | None, float]:
    """Of the told sentences with the answer the one that has the largest share of the rewrite's words, and that share.

    Of equals the first: spans are in the order of their strength.
    """
    asked = content_stems(reading.question) - content_stems(reading.answer)
    best: Fact | None = None
    largest = -1.0
    passages = dict.fromkeys(span.passage for span in spans)
    for fact in (fact for passage in passages for fact in facts(passage)):
        if not _holds(fact.text, reading.answer):
            continue
        shortened = _shorten(fact, [reading.answer])
        share = len(asked & content_stems(shortened.text)) / max(len(asked), 1)
        if any(
            fact.passage == span.passage and fact.holds(span.start) for span in spans
        ):
            share += _OWN
        if share > largest and len(shortened.text.split()) <= _MOST_WORDS:
            best, largest = shortened, share
    return best, largest


def _holds(text: str, answer: str) -> bool:
    """Whether a text has an answer, and not only as part of a word or a number.

    >>> _holds("It costs 120 or 6,780.", "12"), _holds("It costs 12, or more.", "12")
    (False, True)
    """
    whole = rf"(?<![\w])(?<!\d[.,]){re.escape(answer)}(?!\w|[.,]\d)"
    return re.search(whole, text) is not None


def _shorten(fact: Fact, needed: Sequence[str]) -> Fact:
    text = compress(fact.text, needed, _LONGEST_FACT)
    return Fact(text, fact.passage, fact.start, fact.end)


def _context(
    reading: Reading, spans: Sequence[Span], answer_fact: Fact | None
) -> Iterator[Fact]:
    """The sentence with the answer, then those that share most words with the rewrite and the answer."""
    if answer_fact is not None:
        yield answer_fact
    asked = content_stems(f"{reading.question} {reading.answer}")
    others = []
    passages = {span.passage.id: span.passage for span in spans}
    for passage in passages.values():
        for fact in facts(passage):
            if answer_fact is not None and fact.start == answer_fact.start:
                continue
            shared = len(asked & content_stems(fact.text))
            if shared < _LEAST_SHARED:
                continue
            # What names the answer, or opens the passage, says most about it.
            weight = (
                shared + 2 * _holds(fact.text, reading.answer) + 2 * (fact.start == 0)
            )
            others.append((weight, _shorten(fact, ())))
    others.sort(key=lambda one: -one[0])
    for _, fact in others:
        if len(fact.text.split()) <= _MOST_WORDS:
            yield fact


def says_more(text: str, told: frozenset[str], least: float = _LEAST_NEW) -> bool:
    """Whether enough of a text's words are new beside what was told, of which these are the stems."""
    stems = content_stems(text)
    fresh = stems - told
    return len(fresh) >= 3 and len(fresh) >= least * len(stems)


def nearest_facts(case: Case) -> list[Fact]:
    """Sentences of the best passages that share words with the question: the largest share first, of equals those of
    the better passage."""
    asked = content_stems(case.question)
    near = []
    for hit in case.hits[:_NEAREST_READ]:
        for fact in facts(hit.passage):
            shortened = _shorten(fact, ())
            shared = len(asked & content_stems(shortened.text))
            is_short = len(shortened.text.split()) <= _MOST_WORDS
            if is_short and shared >= min(_LEAST_SHARED, len(asked)):
                near.append((shared, shortened))
    near.sort(key=lambda one: -one[0])
    return [fact for _, fact in near]


def content_stems(text: str) -> frozenset[str]:
    """The stems of a text's content words."""
    return frozenset(
        porter_stem(word)
        for word in words(text)
        if word not in EDIT_STOP_WORDS and word not in WH_WORDS
    )


# Compose the paragraph: why there are several answers, every answer in its order, and what belongs to
# it.

_COMPOSING_NEAREST = 3  # passages that are cited where there is no answer
_LONGEST_LIST = 70  # words of one sentence
_YEAR = re.compile(r"\b((?:1[0-9]|20)\d\d)s?\b")
_PLACE = re.compile(r"\b(?:in|at) (?:the )?[A-Z]")
_NAME = re.compile(r"\b[A-Z][\w’'.-]*(?: (?:of |the )*[A-Z][\w’'-]*)*")
_WORDS = re.compile(r"[\w’'.-]*\w")
_ORDINAL = re.compile(r"\b(?:season|series|episode|volume|part|book) (\d+)\b", re.I)


@dataclass(frozen=True, slots=True)
class Length:
    """How many words a long answer has; one reading takes one or two sentences."""

    least: int = 60
    most: int = 100


def write_story(case: Case, support: Support, length: Length) -> LongAnswer:
    """The long answer of a case: every sentence with the passages that support it."""
    tellings = _tell_all(case, _in_order(case.readings), support)
    if not tellings:
        sentences = _nothing(case)
    elif len(tellings) == 1:
        sentences = _one_answer(tellings[0], length)
    else:
        sentences = _several_answers(case.question, tellings, length)
    if not case.policy.careful:
        _add_nearest(sentences, case, length)
    return LongAnswer(case.question, tuple(sentences))


def _tell_all(
    case: Case, readings: Sequence[Reading], support: Support
) -> list[Telling]:
    tellings = []
    for reading in readings:
        telling = tell(case, reading, support)
        if telling is not None:
            tellings.append(telling)
    return tellings


def _add_nearest(sentences: list[Citation], case: Case, length: Length) -> None:
    """Sentences of the best passages that have most words of the question, while there are too few words."""
    text = " ".join(citation.sentence for citation in sentences)
    for fact in nearest_facts(case):
        size = len(text.split())
        if size >= length.least:
            return
        if size + len(fact.text.split()) > length.most:
            continue
        if says_more(fact.text, content_stems(text)):
            sentences.append(Citation(fact.text, (fact.passage,)))
            text = f"{text} {fact.text}"


def _nothing(case: Case) -> list[Citation]:
    """That there is no answer, and what the nearest passages are about."""
    nearest = tuple(hit.passage for hit in case.hits[:_COMPOSING_NEAREST])
    if not nearest:
        return []
    titles = list(dict.fromkeys(f"“{one.title}”" for one in nearest if one.title))
    text = "No answer to this question was found"
    if titles:
        text += f"; the nearest passages are from {join(titles)}"
    return [Citation(f"{text}.", nearest)]


def _one_answer(telling: Telling, length: Length) -> list[Citation]:
    """The answer, and one more sentence if it says something new."""
    text, passage = telling.sentence
    sentences = [Citation(text, (passage,))]
    fact = telling.answer_fact
    if fact is not None and telling.adds(fact, content_stems(text)):
        count = len(text.split()) + len(fact.text.split())
        if count <= length.most:
            sentences.append(Citation(fact.text, (fact.passage,)))
    return sentences


def _several_answers(
    question: str, tellings: Sequence[Telling], length: Length
) -> list[Citation]:
    """The opening, the answers in a list or one by one, and context until there are enough words."""
    listed = _listed(tellings)
    if listed is not None:
        opening = _opening(question, tellings, listed.passages)
        groups = [[opening, listed], *([] for _ in tellings)]
    else:
        told = _one_by_one(tellings)
        passages = _distinct([one.passages[0] for group in told for one in group])
        opening = _opening(question, tellings, passages)
        groups = [[opening], *told]
    _add_context(groups, tellings, length)
    return [citation for group in groups for citation in group]


def _one_by_one(tellings: Sequence[Telling]) -> list[list[Citation]]:
    """A sentence for each answer. One that gives several answers is told once, where the first of them is."""
    groups: list[list[Citation]] = []
    seen: set[str] = set()
    for telling in tellings:
        text, passage = telling.sentence
        if telling.is_attributed:
            attributed_here = []
            for other in tellings:
                if other.is_attributed and other.passage.id == passage.id:
                    attributed_here.append(other.reading)
            text = attributed(attributed_here, passage)
        is_told = text in seen
        seen.add(text)
        groups.append([] if is_told else [Citation(text, (passage,))])
    return groups


def _opening(
    question: str, tellings: Sequence[Telling], passages: tuple[Passage, ...]
) -> Citation:
    """Why there are several answers; it cites what supports each of them."""
    readings = [telling.reading for telling in tellings]
    gap = parse_question(restore_capitals(question, passages))
    differs = _what_differs(question, readings)
    clause = gap.clause if gap is not None else ""
    # What is asked was not stated of each answer: the passages may not speak of it at all.
    if any(telling.stated is None for telling in tellings):
        differs = clause = ""
    if differs:
        text = f"{clause or 'the answer'} depends on {differs}."
    elif clause:
        text = f"The sources differ on {clause}."
    else:
        text = f"“{_as_quoted(question)}” has more than one answer in the sources."
        return Citation(text, passages)
    return Citation(text[0].upper() + text[1:], passages)


def _as_quoted(question: str) -> str:
    """A question as it stands between quotation marks.

    >>> _as_quoted("who sang it? ")
    'Who sang it'
    """
    words = question.strip().rstrip("?").rstrip()
    return words[:1].upper() + words[1:]


def _listed(tellings: Sequence[Telling]) -> Citation | None:
    """One sentence for all answers; None where they have no form in common."""
    statements = [one.stated for one in tellings if one.stated is not None]
    if len(statements) < len(tellings):
        return None
    text = list_statements(statements)
    if not text or len(text.split()) > _LONGEST_LIST:
        return None
    passages = _distinct([telling.passage for telling in tellings])
    return Citation(f"{text[0].upper()}{text[1:]}.", passages)


def _add_context(
    groups: list[list[Citation]], tellings: Sequence[Telling], length: Length
) -> None:
    """Facts of each reading in turn, behind its answer, until there are enough words."""
    text = " ".join(citation.sentence for group in groups for citation in group)
    count = len(text.split())
    told = content_stems(text)
    queues = [list(telling.context) for telling in tellings]
    while count < length.least and any(queues):
        for group, queue, telling in zip(groups[1:], queues, tellings, strict=True):
            while queue:
                fact = queue.pop(0)
                size = len(fact.text.split())
                if count + size <= length.most and telling.adds(fact, told):
                    group.append(Citation(fact.text, (fact.passage,)))
                    count += size
                    told |= content_stems(fact.text)
                    break


def _distinct(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    return tuple(dict.fromkeys(passages))


def _in_order(readings: Sequence[Reading]) -> list[Reading]:
    """Readings by time where each has a year, by number where each is a numbered part, else by importance."""
    for key in (_time, _number):
        keys = [key(reading) for reading in readings]
        if all(one is not None for one in keys) and len(set(keys)) > 1:
            places = sorted(range(len(readings)), key=lambda place: keys[place] or ())
            return [readings[place] for place in places]
    return list(readings)


def _time(reading: Reading) -> tuple[int, ...] | None:
    """The date that a reading is about: of its answer, of its rewrite, or of its title."""
    date = parse_date(reading.answer)
    if date is not None and date.year is not None:
        return (date.year, date.month or 0, date.day or 0)
    for text in (reading.question, _title(reading), _evidence_sentence(reading)):
        year = _YEAR.search(text)
        if year:
            return (int(year[1]),)
    return None


def _evidence_sentence(reading: Reading) -> str:
    if not reading.evidence:
        return ""
    span = reading.evidence[0]
    start, end = sentence_at(span.passage.text, span.start)
    return span.passage.text[start:end]


def _number(reading: Reading) -> tuple[int, ...] | None:
    match = _ORDINAL.search(reading.question)
    return (int(match[1]),) if match else None


def _what_differs(question: str, readings: Sequence[Reading]) -> str:
    """What the answer depends on, by what the rewrites add; empty where they do not say.

    >>> readings = [Reading("Who won it in 1998?", "A"), Reading("Who won it in 2002?", "B")]
    >>> _what_differs("Who won it?", readings)
    'the year'
    """
    rewrites = [reading.question for reading in readings]
    if len(set(rewrites)) < len(rewrites):
        return ""
    added = [_added(question, rewrite) for rewrite in rewrites]
    if sum(map(bool, added)) < len(added) - 1:
        return ""
    kinds = _works(readings) or [_kind(text) for text in added]
    if all(kinds):
        is_one_kind = all(is_same_kind(kinds[0], kind) for kind in kinds)
        return f"the {kinds[0]}" if is_one_kind else "the version"
    for pattern, noun in ((_YEAR, "the year"), (_PLACE, "the place")):
        if all(pattern.search(text) for text in added):
            return noun
    titles = {one.evidence[0].passage.title for one in readings if one.evidence}
    if len(titles) == 1:  # one document tells its cases apart: no name has two senses
        return "the case"
    name = _shared_name(question, readings)
    return f"which {name} is meant" if name else "what is meant"


def _added(question: str, rewrite: str) -> str:
    """The words that a rewrite adds to a question."""
    before, after = question.rstrip("?").split(), rewrite.rstrip("?").split()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    added: list[str] = []
    for tag, _, _, start, stop in matcher.get_opcodes():
        if tag in ("insert", "replace"):
            added += after[start:stop]
    return " ".join(added)


def _shared_name(question: str, readings: Sequence[Reading]) -> str:
    """The longest name in the question whose words all stand in the title of every reading's evidence."""
    for match in sorted(_NAME.finditer(question, 1), key=lambda one: -len(one[0])):
        name = match[0].removesuffix("’s").removesuffix("'s")
        if name.startswith("The "):
            continue
        parts = set(name.split())
        if all(parts <= set(_WORDS.findall(_title(one))) for one in readings):
            return name
    return ""


def _title(reading: Reading) -> str:
    return reading.evidence[0].passage.title if reading.evidence else ""


def _works(readings: Sequence[Reading]) -> list[str]:
    """The kinds of the works that the evidence is about; empty where not each reading has a work of its own."""
    kinds = []
    for reading in readings:
        work = work_of(reading.evidence[0].passage) if reading.evidence else None
        if work is None:
            return []
        kinds.append(work.kind)
    is_distinct = len({_title(reading) for reading in readings}) == len(readings)
    return kinds if is_distinct else []


def _kind(text: str) -> str:
    """The kind of work that a text names: the last such word."""
    kind = ""
    for word in re.findall(r"[a-z]+", text):
        if word in statements.WORK_NOUNS:
            kind = word
    return kind
