"""Hold a conversation: ask, ask back, take a reply, answer the reading that was meant, go on from there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from whichsense.conversation.matching import (
    FILLERS,
    SIZE_ORDER,
    TIME_ORDER,
    Matcher,
    Profile,
    content,
    plain,
    tokenize,
)
from whichsense.conversation.replies import is_question, proposal, understand
from whichsense.conversation.turns import (
    ABOUT,
    ALL,
    ANSWER,
    CHOOSE,
    CLARIFICATION,
    EXPLANATION,
    MORE,
    NONE,
    NOTHING,
    POSSIBLE,
    QUESTION,
    READINGS,
    REFINE,
    SKIP,
    UNCLEAR,
    Conversation,
    Intent,
    Turn,
    check_reply,
)
from whichsense.errors import BadInput, MissingStage
from whichsense.jobs.limits import LimitReached, Limits, within
from whichsense.models.seq2seq.formats import clarified
from whichsense.pipeline import Pipeline
from whichsense.protocols import Retriever
from whichsense.stages.clarify import offer_each
from whichsense.text.answers import same_answer
from whichsense.text.clarification import compose_question
from whichsense.text.words import sentence_at
from whichsense.types import Candidate, Case, Clarification, Hit, Option, Reading, Span

# Whether a question back is worth it, and whether what was said already chooses.


@dataclass(frozen=True, slots=True)
class AskingPolicy:
    """When a person is asked back."""

    enabled: bool = True
    """False: never. All readings are shown at once."""
    follow_ups: int = 1
    """How often in a row the choice of a group may lead to a narrower question."""
    repeats: int = 1
    """How often in a row the same options are shown again after a reply that fits nothing."""


def clarification_of(pipeline: Pipeline, case: Case) -> Clarification | None:
    """The question back to the person; None where it is not worth asking."""
    if len(case.readings) < 2 or not _answers_differ(case.readings):
        return None
    try:
        clarification = pipeline.clarify(case)
    except MissingStage:
        clarification = offer_each(case.readings)
    if clarification is None or len(clarification.options) < 2:
        return None
    return clarification


def _answers_differ(readings: Sequence[Reading]) -> bool:
    first = readings[0].answer
    return any(not same_answer(first, other.answer) for other in readings[1:])


def narrower(
    clarification: Clarification, options: Sequence[Option]
) -> Clarification | None:
    """A question about a group's own options; None where no group was chosen."""
    if len(options) != 1 or len(options[0].options) < 2:
        return None
    options = options[0].options
    labels = [option.label for option in options]
    question = compose_question(clarification.lead, labels)
    return replace(clarification, question=question, options=tuple(options))


def chosen_by_context(
    clarification: Clarification, question: str, said: Sequence[str]
) -> str:
    """The id of the one option that the question, or what was said before, already names; '' where none is.

    `said` has the latest first. It counts where it is about the same thing as the question, or names nothing else.
    """
    matcher = Matcher(clarification, question)
    for text in (question, *said):
        if text != question and not _is_related(text, matcher):
            continue
        named = _named(text, matcher)
        if len(named) == 1:
            return named[0]
        if named:
            return ""
    return ""


def _named(text: str, matcher: Matcher) -> list[str]:
    """Options all of whose own words, those that no other label has, are said, where they are years or names."""
    stems = {token.stem for token in tokenize(plain(text))}
    named = []
    for profile in matcher.profiles:
        own = _own_stems(profile, matcher)
        if own and own <= stems:
            named.append(profile.id)
    return named


def _own_stems(profile: Profile, matcher: Matcher) -> set[str]:
    own = {token.stem for token in profile.label.tokens}
    for other in matcher.profiles:
        if other.id != profile.id:
            own -= {token.stem for token in other.label.tokens}
    return own


def _is_related(text: str, matcher: Matcher) -> bool:
    """Whether a text shares a word with the question, or has nothing but words of the options."""
    stems = {token.stem for token in content(tokenize(plain(text)))}
    if stems & matcher.asked:
        return True
    labels = set()
    for profile in matcher.profiles:
        labels |= {token.stem for token in profile.label.tokens}
    return bool(stems) and stems <= labels


# The answer to a reading that was chosen: its evidence ranked anew, more of it where it is thin.

_ENOUGH = 2  # passages with all the words of the choice
_MOST_SPANS = 5


@dataclass(frozen=True)
class GivenHits:
    """A retriever that gives the hits that are there, and searches for more where they are thin."""

    hits: tuple[Hit, ...]
    more: Retriever | None = None

    def retrieve(self, cases: Sequence[Case], k: int) -> list[Case]:
        retrieved = []
        for case in cases:
            hits = {hit.passage.id: hit for hit in self.hits}
            if self.more is not None:
                for hit in self.more.retrieve([case], k)[0].hits:
                    hits.setdefault(hit.passage.id, hit)
            retrieved.append(replace(case, hits=tuple(hits.values())[:k]))
        return retrieved


@dataclass(frozen=True)
class Excluding:
    """A retriever that leaves out passages."""

    retriever: Retriever
    passages: frozenset[str]

    def retrieve(self, cases: Sequence[Case], k: int) -> list[Case]:
        retrieved = []
        for case in self.retriever.retrieve(cases, k + len(self.passages)):
            hits = [hit for hit in case.hits if hit.passage.id not in self.passages]
            retrieved.append(replace(case, hits=tuple(hits[:k])))
        return retrieved


def answer_option(
    pipeline: Pipeline, case: Case, category: str, option: Option, limits: Limits
) -> tuple[Reading, ...]:
    """The readings of an option, each with the evidence that fits it best.

    The question is read again with the choice behind it ("AQ, Which category: option", CAmbigNQ). A reading keeps its
    answer, which was verified; what is read again adds and orders its evidence.
    """
    if pipeline.reader is None or not option.readings:
        return option.readings
    question = clarified(case.question, category, option.label)
    more = pipeline.retriever if is_thin(case.hits, option.label) else None
    again = replace(pipeline, retriever=GivenHits(case.hits, more))
    read = again.run([question], "evidence", limits=limits)[0]
    if not read.stopped:
        try:
            with within(limits):
                read = pipeline.reader.read([read])[0]
        except LimitReached:
            return option.readings
    return tuple(_with_evidence(one, read.answers) for one in option.readings)


def is_thin(hits: Sequence[Hit], label: str) -> bool:
    """Whether too few passages have all the words of a label.

    >>> from whichsense.testing import passage_hit
    >>> is_thin([passage_hit("The 2008 film is dark."), passage_hit("A film of 2008.")], "the 2008 film")
    False
    """
    wanted = {token.stem for token in content(tokenize(plain(label)))}
    count = 0
    for hit in hits:
        text = plain(f"{hit.passage.title} {hit.passage.text}")
        count += wanted <= {token.stem for token in tokenize(text)}
    return count < _ENOUGH


def _with_evidence(reading: Reading, answers: Sequence[Candidate]) -> Reading:
    """The reading with the spans that were read again for its answer before those that it had: what was checked stays
    first where it is among them."""
    spans: dict[tuple[str, int], Span] = {}
    if reading.evidence:
        best = reading.evidence[0]
        spans[best.passage.id, best.start] = best
    for candidate in answers:
        if same_answer(candidate.answer, reading.answer):
            for span in candidate.spans:
                spans.setdefault((span.passage.id, span.start), span)
    for span in reading.evidence:
        spans.setdefault((span.passage.id, span.start), span)
    return replace(reading, evidence=tuple(spans.values())[:_MOST_SPANS])


# A question that leans on the one before: "and who directed it?".

_THING = re.compile(
    r"\b(?:its?\b(?!['’])|(?:this|that)(?: one)?(?=[\s?.!]*$))", re.IGNORECASE
)
_PERSON = re.compile(r"\b(he|she|him|her|his|hers)\b", re.IGNORECASE)
_POSSESSIVE = ("its", "his", "her")
_BRACKETS = re.compile(r"\s*\([^)]*\)$")
_NAME = re.compile(
    r"[A-Z][\w'’-]*(?: (?:(?:of|the|and|de|la|von|van) )*[A-Z0-9][\w'’-]*)*"
)
_FIRST_WORDS = re.compile(r"^\W*\w+")


def resolved(question: str, conversation: Conversation) -> str:
    """The question with its pronoun replaced: "he" or "she" by the last answer, "it" by the title that this answer
    rests on; before there is one answer, by the name in the last question. One that names something itself stays."""
    if _names_something(question):
        return question
    reading = _last_reading(conversation)
    if _PERSON.search(question) and reading and reading.answer[:1].isupper():
        return _replaced(_PERSON, question, reading.answer)
    thing = _name_in(conversation.case.question) if conversation.case else ""
    if reading and reading.evidence:
        thing = _BRACKETS.sub("", reading.evidence[0].passage.title)
    return _replaced(_THING, question, thing) if thing else question


def _replaced(pronoun: re.Pattern[str], question: str, name: str) -> str:
    return pronoun.sub(lambda match: _form(match[0], name), question, count=1)


def _name_in(question: str) -> str:
    """The longest name in a question, behind its first word.

    >>> _name_in("Who plays the Phantom in The Phantom of the Opera?"), _name_in("who won it")
    ('The Phantom of the Opera', '')
    """
    names = _NAME.findall(_FIRST_WORDS.sub("", question))
    return max(names, key=len, default="")


def _form(pronoun: str, name: str) -> str:
    return f"{name}'s" if pronoun.lower() in _POSSESSIVE else name


def _names_something(question: str) -> bool:
    """Whether a word behind the first is capitalized, or a number."""
    rest = _FIRST_WORDS.sub("", question)
    if any(token.number is not None for token in tokenize(plain(rest))):
        return True
    return any(word[:1].isupper() and word != "I" for word in re.findall(r"\w+", rest))


def _last_reading(conversation: Conversation) -> Reading | None:
    """The one reading that was answered last."""
    for turn in reversed(conversation.turns):
        if turn.shown == ANSWER:
            return turn.readings[0] if len(turn.readings) == 1 else None
    return None


# A question narrowed by words of the person's own, which no option has.

_PREPOSITIONS = frozenset(
    "in on at for from during with by of before after since until under as".split()
)
_ARTICLES = ("the", "a", "an")
_NUMBER_OF_OPTION = re.compile(r"\d{1,2}[.)]?")
# Words of a reply that narrows a question; more are a question of their own.
_LONGEST = 8
_SHORT = 2
# The least score with which a reply names something that is merely possible.
_SURE = 0.6


def implied_clarification(case: Case) -> Clarification:
    """The readings of a case as options, whether or not the person was asked."""
    return offer_each(case.readings)


def refine(
    pipeline: Pipeline, conversation: Conversation, said: str, limits: Limits
) -> Turn | None:
    """A turn for a reply that names no option: what is merely possible, or what a search with its words finds.

    None where neither has the words of the reply.
    """
    case = conversation.case
    assert case is not None
    clarification = conversation.clarification or implied_clarification(case)
    wanted = _content(said, Matcher(clarification, case.question))
    is_short = len(said.split()) <= _LONGEST
    if not wanted or not is_short or not says_something(said):
        return None
    question = narrowed(case.question, own_words(said))
    turn = Turn(said, Intent(REFINE, question=question), ANSWER)
    named = _named_possible(case, said, wanted)
    if named:
        return replace(turn, shown=POSSIBLE, readings=named)
    found = pipeline.ask(question, limits=limits)
    readings = []
    for reading in (*found.readings, *found.possible):
        if _has_words(reading, wanted):
            readings.append(reading)
    if not readings:
        return None
    return replace(
        turn, readings=tuple(readings[:1]), message=f"Taken as: {own_words(said)}."
    )


def completed(said: str, conversation: Conversation) -> str:
    """A question for what is no question: "in the seventies" goes on with the last one, and so does what follows a
    question without an answer; "the capital of France" does not."""
    case = conversation.case
    if case is None:
        return said
    bare = own_words(said)
    is_short = len(bare.split()) <= _SHORT or conversation.last.shown == NOTHING
    if is_short or bare.lower().partition(" ")[0] in _PREPOSITIONS:
        return narrowed(_question_as_asked(conversation), bare)
    return resolved(said, conversation)


def _question_as_asked(conversation: Conversation) -> str:
    """The last question in a person's own words, without what was added to it in vain."""
    for turn in reversed(conversation.turns):
        if turn.intent.question == turn.said:
            return turn.said
    return conversation.case.question if conversation.case else ""


def narrowed(question: str, words: str) -> str:
    """A question with words behind it; a word that stands on both sides is said once.

    >>> narrowed("Who won?", "in 2008"), narrowed("When did it come out?", "the book")
    ('Who won in 2008?', 'When did it come out, the book?')
    >>> narrowed("how heavy is the skerry", "Skerry 48")
    'how heavy is the skerry 48?'
    """
    bare = question.rstrip(" ?")
    first, _, rest = words.partition(" ")
    if rest and bare.lower().endswith(f" {first.lower()}"):
        return f"{bare} {rest}?"
    mark = "" if first.lower() in _PREPOSITIONS else ","
    return f"{bare}{mark} {words}?"


def own_words(said: str) -> str:
    """A reply without what stands before its own words, and without its mark.

    >>> own_words("and in Uruguay?"), own_words("What about Estate?"), own_words("I'm an administrator")
    ('in Uruguay', 'Estate', 'an administrator')
    """
    words = said.rstrip(" ?.!").split()
    start = 0
    for place, word in enumerate(words):
        bare = plain(word).split()
        opens = bare[:1] and (bare[0] in _PREPOSITIONS or bare[0] in _ARTICLES)
        if opens and bare[0] != "about":
            break
        if not all(part.strip(",.:;") in FILLERS for part in bare):
            break
        start = place + 1
    return " ".join(words[start:]) or said


def says_something(said: str) -> bool:
    """Whether a text has more than words that go around a choice, and is not the bare number of one.

    >>> says_something("ok, thanks!"), says_something("the newer one"), says_something("the film")
    (False, False, True)
    >>> says_something("2"), says_something("1998")
    (False, True)
    """
    if _NUMBER_OF_OPTION.fullmatch(said.strip()):
        return False
    empty = FILLERS | TIME_ORDER.keys() | SIZE_ORDER.keys()
    return any(token.text not in empty for token in tokenize(plain(said)))


def _named_possible(case: Case, said: str, wanted: set[str]) -> tuple[Reading, ...]:
    if not case.possible or any(_is_named(one, wanted) for one in case.readings):
        return ()
    # The probable ones compete: what fits them as well singles nothing out.
    clarification = offer_each((*case.possible, *case.readings))
    intent = understand(said, clarification, case.question)
    if intent.kind != "choose" or intent.score < _SURE:
        return ()
    places = [int(identifier) - 1 for identifier in intent.options]
    if max(places) >= len(case.possible):
        return ()
    return tuple(case.possible[place] for place in places)


def _content(said: str, matcher: Matcher) -> set[str]:
    """The stems of a reply's own words."""
    return {token.stem for token in matcher.content(tokenize(plain(said)))}


def _is_named(reading: Reading, wanted: set[str]) -> bool:
    """Whether the rewrite of a reading, its label, or a title behind it, has all the words."""
    titles = " ".join(span.passage.title for span in reading.evidence)
    tokens = tokenize(plain(f"{reading.question} {reading.label} {titles}"))
    return wanted <= {token.stem for token in tokens}


def _has_words(reading: Reading, wanted: set[str]) -> bool:
    """Whether a passage behind a reading has all the words."""
    for span in reading.evidence:
        text = plain(f"{span.passage.title} {span.passage.text}")
        if wanted <= {token.stem for token in tokenize(text)}:
            return True
    return False


# Questions about the options, answered from what is known of them.

_DESCRIPTIONS_LONGEST = 240  # characters of a sentence that is quoted


def describe(clarification: Clarification, ids: Sequence[str]) -> str:
    """What the named options are, one line each; without ids, why the person is asked.

    One option that a question singled out ("which is the newest?") is named first.
    """
    if not ids:
        count = len(clarification.options)
        return (
            f"The question has {count} answers here, one for each of these:\n"
            + _lines(clarification.options)
        )
    options = [option for option in clarification.options if option.id in ids]
    return _lines(options)


def _lines(options: Sequence[Option]) -> str:
    return "\n".join(describe_option(option) for option in options)


def describe_option(option: Option) -> str:
    """An option with the sentence of its evidence, or with its description where it has none."""
    about = option.description
    for reading in option.readings[:1]:
        if reading.evidence:
            about = _sentence(reading.evidence[0])
    line = f"{option.id}. {option.label}"
    if option.options:
        labels = ", ".join(inner.label for inner in option.options)
        line = f"{line} ({labels})"
    return f"{line} – {about}" if about else line


def _sentence(span: Span) -> str:
    text = span.passage.text
    start, end = sentence_at(text, span.start)
    sentence = " ".join(text[start:end].split())
    if len(sentence) > _DESCRIPTIONS_LONGEST:
        sentence = sentence[:_DESCRIPTIONS_LONGEST].rsplit(" ", 1)[0] + " …"
    return f"“{sentence}” [{span.passage.title}]"


# What follows from a reply that was understood: one function for each kind, from turn to turn.


@dataclass(frozen=True, slots=True)
class Exchange:
    """A conversation at the moment of a reply to its clarification."""

    pipeline: Pipeline
    conversation: Conversation
    case: Case
    clarification: Clarification
    policy: AskingPolicy
    limits: Limits

    def answer(self, turn: Turn) -> Turn:
        """The turn with what is to be shown for its intent. It comes with all readings, for those who skip."""
        kind = turn.intent.kind
        if kind in (CHOOSE, ALL):
            return self._answer_choice(turn)
        if kind == ABOUT:
            return self._answer_about(turn)
        if kind == NONE:
            return self._look_elsewhere(turn)
        if kind == UNCLEAR:
            return self._answer_unclear(turn)
        return turn

    def _answer_choice(self, turn: Turn) -> Turn:
        """The answer to the options that were chosen; for a group, one narrower question first."""
        options = [find_option(self.clarification, one) for one in turn.intent.options]
        narrowed = narrower(self.clarification, options)
        if narrowed is not None and self._may_follow_up(narrowed):
            return replace(
                turn, shown=CLARIFICATION, clarification=narrowed, readings=()
            )
        if turn.intent.kind == ALL:
            return replace(turn, shown=ANSWER)  # there is nothing to rank anew for
        readings: list[Reading] = []
        for option in options:
            readings += answer_option(
                self.pipeline,
                self.case,
                self.clarification.category,
                option,
                self.limits,
            )
        return replace(turn, shown=ANSWER, readings=tuple(readings))

    def _may_follow_up(self, narrowed: Clarification) -> bool:
        """Whether one more question in a row is allowed; never the same one twice."""
        count = 0
        for turn in reversed(self.conversation.turns):
            if not turn.pending or turn.intent.kind != CHOOSE:
                break
            count += 1
        is_new = narrowed.question not in self.conversation.asked
        return self.policy.enabled and count < self.policy.follow_ups and is_new

    def _answer_about(self, turn: Turn) -> Turn:
        """A description of the options and the options again; where nothing is pending, the readings themselves."""
        if self.conversation.last.pending:
            message = describe(self.clarification, turn.intent.options)
            return self._put_again(turn, message)
        readings: list[Reading] = []
        for option in self.clarification.options:
            if option.id in turn.intent.options or not turn.intent.options:
                readings += option.readings
        return replace(
            turn, shown=ANSWER if readings else NOTHING, readings=tuple(readings)
        )

    def _put_again(self, turn: Turn, message: str) -> Turn:
        return replace(
            turn,
            shown=CLARIFICATION,
            message=message,
            readings=(),
            clarification=self.clarification,
        )

    def _look_elsewhere(self, turn: Turn) -> Turn:
        """What is merely possible, then what a search without the rejected passages finds, then one more word."""
        if self.case.possible:
            return replace(turn, shown=POSSIBLE, readings=self.case.possible)
        rejected: list[Reading] = []
        for option in self.clarification.options:
            rejected += option.readings
        passages: set[str] = set()
        for reading in rejected:
            passages |= {span.passage.id for span in reading.evidence}
        retriever = Excluding(self.pipeline.retriever, frozenset(passages))
        elsewhere = replace(self.pipeline, retriever=retriever)
        found = elsewhere.ask(self.case.question, limits=self.limits)
        fresh = []
        for reading in (*found.readings, *found.possible):
            if not any(same_answer(reading.answer, one.answer) for one in rejected):
                fresh.append(reading)
        if fresh:
            return replace(turn, shown=POSSIBLE, readings=tuple(fresh))
        message = "Nothing else was found. Say in a word or two what you mean."
        return replace(turn, shown=MORE, readings=(), message=message)

    def _answer_unclear(self, turn: Turn) -> Turn:
        """The options once more, then the readings."""
        repeats = 0
        for earlier in reversed(self.conversation.turns):
            if earlier.intent.kind != UNCLEAR:
                break
            repeats += 1
        if repeats < self.policy.repeats:
            return self._put_again(turn, "That fits none of these.")
        return replace(turn, message="That fits none of these. Here is every reading.")


def find_option(clarification: Clarification, identifier: str) -> Option:
    """The option of this id. Raises `BadInput` where there is none."""
    for option in clarification.options:
        if option.id == identifier:
            return option
    known = ", ".join(option.id for option in clarification.options)
    raise BadInput(f"There is no option '{identifier}'. There are: {known}.")


# The verbs of a conversation: begin, ask, reply, choose, explain. Each returns the conversation with
# one more turn.

_ASKING = AskingPolicy()
_NO_LIMITS = Limits()
_NEXT = "Ask another question, or say more about this one."


def begin(
    pipeline: Pipeline,
    question: str,
    *,
    policy: AskingPolicy = _ASKING,
    limits: Limits = _NO_LIMITS,
    identifier: str = "",
) -> Conversation:
    """A conversation about a question. Its last turn says what to show: an answer, or a question back."""
    conversation = Conversation(identifier) if identifier else Conversation.new()
    return ask(pipeline, conversation, question, policy=policy, limits=limits)


def ask(
    pipeline: Pipeline,
    conversation: Conversation,
    question: str,
    *,
    policy: AskingPolicy = _ASKING,
    limits: Limits = _NO_LIMITS,
    said: str = "",
) -> Conversation:
    """A new question within a conversation; `said` is how the person put it, where that differs."""
    question = check_reply(question)
    case = replace(pipeline.ask(question, limits=limits), scratch=None)
    turn = Turn(said or question, Intent(QUESTION, question=question), READINGS)
    said_before = conversation.said()
    conversation = replace(conversation, case=case)
    if not case.readings:
        return conversation.with_turn(replace(turn, shown=NOTHING))
    turn = replace(turn, readings=case.readings)
    clarification = clarification_of(pipeline, case)
    if clarification is None:
        shown = READINGS if case.has_several_readings else ANSWER
        return conversation.with_turn(replace(turn, shown=shown))
    turn = replace(turn, clarification=clarification)
    named = chosen_by_context(clarification, question, said_before)
    if named:
        option = find_option(clarification, named)
        readings = answer_option(pipeline, case, clarification.category, option, limits)
        message = f"Taken as: {option.label}."
        turn = replace(turn, shown=ANSWER, readings=readings, message=message)
    elif policy.enabled and clarification.question not in conversation.asked:
        turn = replace(turn, shown=CLARIFICATION)
    return conversation.with_turn(turn)


def reply(
    pipeline: Pipeline,
    conversation: Conversation,
    text: str,
    *,
    policy: AskingPolicy = _ASKING,
    limits: Limits = _NO_LIMITS,
) -> Conversation:
    """The next turn: a reply to the pending clarification, a later choice among its options, or a new question."""
    said = check_reply(text)
    intent = _intent_of(said, conversation)
    if intent.kind == UNCLEAR:
        refined = refine(pipeline, conversation, said, limits)
        if refined is not None:
            return conversation.with_turn(refined)
        if not conversation.last.pending and not says_something(said):
            return conversation.with_turn(Turn(said, intent, MORE, _NEXT))
        if not conversation.last.pending:
            intent = Intent(QUESTION, question=completed(said, conversation))
    if intent.kind == QUESTION:
        return ask(
            pipeline,
            conversation,
            intent.question,
            policy=policy,
            limits=limits,
            said=said,
        )
    exchange = _exchange(pipeline, conversation, policy, limits)
    return _answered(exchange, said, intent)


def choose(
    pipeline: Pipeline,
    conversation: Conversation,
    options: Sequence[str],
    *,
    policy: AskingPolicy = _ASKING,
    limits: Limits = _NO_LIMITS,
) -> Conversation:
    """The next turn: options chosen by their ids, as by clicking. An empty choice skips the clarification."""
    if conversation.clarification is None:
        raise BadInput("No clarification was asked: there is nothing to choose from.")
    exchange = _exchange(pipeline, conversation, policy, limits)
    labels = [find_option(exchange.clarification, one).label for one in options]
    intent = Intent(CHOOSE, tuple(options)) if options else Intent(SKIP)
    return _answered(exchange, ", ".join(labels), intent)


def explain(pipeline: Pipeline, conversation: Conversation) -> Conversation:
    """The next turn: the whole story of the question, with sources. The pipeline needs a summarizer."""
    long_answer = pipeline.summarize(_case_of(conversation))
    turn = Turn("", Intent(SKIP), EXPLANATION, long_answer=long_answer)
    return conversation.with_turn(turn)


def show_readings(conversation: Conversation) -> Conversation:
    """The next turn: every reading that is shown."""
    readings = _case_of(conversation).readings
    return conversation.with_turn(Turn("", Intent(SKIP), READINGS, readings=readings))


def _intent_of(said: str, conversation: Conversation) -> Intent:
    """What was said, in its place. A question that leans on what was said before is completed."""
    case = conversation.case
    if case is None:
        return Intent(QUESTION, question=said)
    is_more = conversation.last.shown == MORE and says_something(said)
    if is_more and not is_question(plain(said)):
        return Intent(QUESTION, question=narrowed(case.question, own_words(said)))
    clarification = conversation.clarification or implied_clarification(case)
    intent = understand(said, clarification, case.question, conversation.chosen)
    if intent.kind == QUESTION:
        return replace(intent, question=resolved(intent.question, conversation))
    if conversation.clarification is None and intent.kind not in (NONE, ABOUT):
        # There was no choice: what is not against the answer, or about it, is about another one.
        asks = is_question(plain(said)) and not proposal(plain(said))
        return Intent(QUESTION, question=said) if asks else Intent(UNCLEAR, score=0.0)
    return intent


def _exchange(
    pipeline: Pipeline, conversation: Conversation, policy: AskingPolicy, limits: Limits
) -> Exchange:
    case = _case_of(conversation)
    clarification = conversation.clarification or implied_clarification(case)
    return Exchange(pipeline, conversation, case, clarification, policy, limits)


def _answered(exchange: Exchange, said: str, intent: Intent) -> Conversation:
    turn = Turn(said, intent, READINGS, readings=exchange.case.readings)
    return exchange.conversation.with_turn(exchange.answer(turn))


def _case_of(conversation: Conversation) -> Case:
    if conversation.case is None:
        raise BadInput("Nothing was asked yet. Begin with a question.")
    return conversation.case
