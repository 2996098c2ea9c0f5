"""Hold a conversation: ask, ask back, take a reply, answer the reading that was meant, go on from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile

from whichsense.conversation.context import (
    Excluding,
    find,
    in_context,
    is_of_another,
    naming,
    speaks_of,
)
from whichsense.conversation.followups import (
    Topic,
    about,
    completed,
    continues,
    fragment,
    fronted,
    goes_on,
    instead,
    is_elliptical,
    leans,
    names_of,
    own_words,
    resolutions,
    resolved,
    says_something,
    stems,
    to_the_point,
    topic_of,
)
from whichsense.conversation.matching import Matcher, plain, tokenize
from whichsense.conversation.replies import is_question, proposal, understand, without_greeting
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
from whichsense.jobs.limits import Limits
from whichsense.pipeline import Pipeline
from whichsense.stages.clarify import offer_each
from whichsense.text.answers import same_answer
from whichsense.text.clarification import compose_question
from whichsense.text.words import sentence_at
from whichsense.types import Case, Clarification, Option, Reading, Span

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
    first, *others = case.readings
    if all(same_answer(first.answer, other.answer) for other in others):
        return None
    try:
        clarification = pipeline.clarify(case)
    except MissingStage:
        clarification = offer_each(case.readings)
    if clarification is None or len(clarification.options) < 2:
        return None
    return clarification


def narrower(clarification: Clarification, options: Sequence[Option]) -> Clarification | None:
    """A question about a group's own options; None where no group was chosen."""
    if len(options) != 1 or len(options[0].options) < 2:
        return None
    options = options[0].options
    labels = [option.label for option in options]
    question = compose_question(clarification.lead, labels)
    return replace(clarification, question=question, options=tuple(options))


def chosen_by_context(
    clarification: Clarification, question: str, said: Sequence[str]
) -> Option | None:
    """The one option that the question, or what was said before, already names; None where none is.

    `said` has the latest first. It counts where it is about the same thing as the question, or names nothing else.
    """
    matcher = Matcher(clarification, question)
    related = (text for text in said if _is_related(text, matcher))
    for text in (question, *related):
        named = _named(text, matcher)
        if named:
            options = [one for one in clarification.options if one.id in named]
            return options[0] if len(options) == 1 else None
    return None


def _named(text: str, matcher: Matcher) -> list[str]:
    """Options all of whose own words, those that no other label and no other's document has, are said."""
    said = {token.stem for token in tokenize(plain(text))}
    named = []
    for option in matcher.profiles:
        own = {token.stem for token in option.label.tokens}
        for other in matcher.profiles:
            if other is not option:
                texts = other.label, *other.titles
                own -= {token.stem for field in texts for token in field.tokens}
        if own and own <= said:
            named.append(option.id)
    return named


def _is_related(text: str, matcher: Matcher) -> bool:
    """Whether a text shares a word with the question, or has nothing but words of the options."""
    said = stems(text)
    labels = [{own.stem for own in one.label.tokens} for one in matcher.profiles]
    return bool(said & matcher.asked) or bool(said and said <= set().union(*labels))


# Questions about the options, answered from what is known of them.

_DESCRIPTIONS_LONGEST = 240  # characters of a sentence that is quoted


def describe(clarification: Clarification, ids: Sequence[str]) -> str:
    """What the named options are, one line each; without ids, why the person is asked.

    One option that a question singled out ("which is the newest?") is named first.
    """
    options = [one for one in clarification.options if not ids or one.id in ids]
    lines = "\n".join(map(describe_option, options))
    if ids:
        return lines
    count = len(options)
    return f"The question has {count} answers here, one for each of these:\n{lines}"


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
    policy: AskingPolicy
    limits: Limits

    @property
    def case(self) -> Case:
        """Return the question that is talked about."""
        return _case_of(self.conversation)

    @property
    def clarification(self) -> Clarification:
        """Return what a reply may choose from, whether or not the person was asked."""
        return self.conversation.clarification or offer_each(self.case.readings)

    def option(self, identifier: str) -> Option:
        """Return the option of this id. Raises `BadInput` if nothing that was offered has it."""
        for clarification in (*self.conversation.clarifications, self.clarification):
            for option in clarification.options:
                if option.id == identifier:
                    return option
        known = ", ".join(option.id for option in self.clarification.options)
        raise BadInput(f"There is no option '{identifier}'. There are: {known}.")

    def own_stems(self, said: str) -> set[str]:
        """Return the stems of a reply's own words."""
        matcher = Matcher(self.clarification, self.case.question)
        return {token.stem for token in matcher.content(tokenize(plain(said)))}

    def ask_back(self, turn: Turn, case: Case) -> Turn:
        """The turn with the readings of a new question, or with the question back where that is worth it."""
        clarification = clarification_of(self.pipeline, case)
        if clarification is None:
            several = case.has_several_readings
            return replace(turn, shown=READINGS if several else ANSWER)
        turn = replace(turn, clarification=clarification)
        said, question = self.conversation.said(), turn.intent.question
        option = chosen_by_context(clarification, question, said)
        named = name_of(option, question) if option else topic_of(self.conversation).name
        option = option or self._of_topic(clarification, question)
        if option:
            return replace(
                turn,
                intent=replace(turn.intent, named=named),
                shown=ANSWER,
                readings=option.readings,
                message=f"Taken as: {named}.",
            )
        is_new = clarification.question not in self.conversation.asked
        return replace(turn, shown=CLARIFICATION if self.policy.enabled and is_new else READINGS)

    def _of_topic(self, clarification: Clarification, question: str) -> Option | None:
        """The one option from the document of what was meant before, which has every name of the question."""
        topic = topic_of(self.conversation)
        replied = any(one.intent.kind in (CHOOSE, REFINE) for one in self.conversation.turns)
        if not replied or not topic.named or topic.passage is None:
            return None
        if not names_of(question.partition(" ")[2]) <= names_of(topic.passage.text):
            return None
        own = [
            one
            for one in clarification.options
            if Topic(readings=one.readings).titles <= topic.titles
        ]
        return own[0] if len(own) == 1 else None

    def answer(self, turn: Turn) -> Turn:
        """The turn with what is to be shown for its intent. It comes with all readings, for those who skip."""
        turn = replace(turn, readings=self.case.readings)
        answers = {
            CHOOSE: self._answer_choice,
            ALL: self._answer_choice,
            ABOUT: self._answer_about,
            NONE: self._look_elsewhere,
            UNCLEAR: self._answer_unclear,
        }
        answer = answers.get(turn.intent.kind)
        return answer(turn) if answer else turn

    def _answer_choice(self, turn: Turn) -> Turn:
        """The answer to the options that were chosen; for a group, one narrower question first."""
        options = [self.option(one) for one in turn.intent.options]
        narrowed = narrower(self.clarification, options)
        if narrowed is not None and self._may_follow_up(narrowed):
            return replace(turn, shown=CLARIFICATION, clarification=narrowed, readings=())
        if turn.intent.kind == ALL:
            return replace(turn, shown=ANSWER)
        readings = tuple(chain(*(option.readings for option in options)))
        names = [name_of(option, self.case.question, turn.said) for option in options]
        if len(names) > 1 and len(Topic(readings=readings).titles) < 2:
            names = []  # what is talked about is their document
        intent = replace(turn.intent, named=" and ".join(names))
        return replace(turn, intent=intent, shown=ANSWER, readings=readings)

    def _may_follow_up(self, narrowed: Clarification) -> bool:
        """Whether one more question in a row is allowed; never the same one twice."""
        turns = reversed(self.conversation.turns)
        row = takewhile(lambda one: one.pending and one.intent.kind == CHOOSE, turns)
        is_new = narrowed.question not in self.conversation.asked
        may = self.policy.enabled and len(list(row)) < self.policy.follow_ups
        return may and is_new

    def _answer_about(self, turn: Turn) -> Turn:
        """A description of the options and the options again; where nothing is pending, the readings themselves."""
        if self.conversation.last.pending:
            message = describe(self.clarification, turn.intent.options)
            return self._put_again(turn, message)
        meant = turn.intent.options
        readings = tuple(
            one
            for option in self.clarification.options
            if option.id in meant or not meant
            for one in option.readings
        )
        return replace(turn, shown=ANSWER if readings else NOTHING, readings=readings)

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
        rejected = [one for option in self.clarification.options for one in option.readings]
        passages = {span.passage.id for one in rejected for span in one.evidence}
        retriever = Excluding(self.pipeline.retriever, frozenset(passages))
        elsewhere = replace(self.pipeline, retriever=retriever)
        found = elsewhere.ask(self.case.question, limits=self.limits)
        fresh = tuple(
            reading
            for reading in (*found.readings, *found.possible)
            if not any(same_answer(reading.answer, one.answer) for one in rejected)
        )
        if fresh:
            return replace(turn, shown=POSSIBLE, readings=fresh)
        message = "Nothing else was found. Say in a word or two what you mean."
        return replace(turn, shown=MORE, readings=(), message=message)

    def _answer_unclear(self, turn: Turn) -> Turn:
        """The options once more, then the readings."""
        turns = reversed(self.conversation.turns)
        repeats = takewhile(lambda one: one.intent.kind == UNCLEAR, turns)
        if len(list(repeats)) < self.policy.repeats:
            return self._put_again(turn, "That fits none of these.")
        return replace(turn, message="That fits none of these. Here is every reading.")


def name_of(option: Option, question: str, said: str = "") -> str:
    """What an option is called: its label; of one that is a whole question, the words that it has more; of one that is
    an answer, the words that chose it; of one that was cut, its document's title.

    >>> name_of(Option("1", "Who played the Joker in 2008?", readings=()), "Who played the Joker?")
    'in 2008'
    """
    for reading in option.readings[:1]:
        if reading.evidence and option.label.endswith("…"):
            return reading.evidence[0].passage.title
        if says_something(said) and same_answer(option.label, reading.answer):
            return own_words(said)
    if not is_question(plain(option.label)):
        return option.label
    asked = plain(question).strip("? ").split()
    words = option.label.strip("? ").split()
    added = [word for word in words if plain(word) not in asked]
    return " ".join(added) or option.label.strip("? ")


# The verbs of a conversation: begin, ask, reply, choose, explain. Each returns the conversation with
# one more turn.

_ASKING = AskingPolicy()
_NO_LIMITS = Limits()
_LONGEST = 8  # words of a reply that narrows a question; more are a question of their own
_SURE = 0.7  # the least score with which a choice in words is not searched for
_SURE_OF_SEVERAL = 0.9  # … with which words choose several options
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
) -> Conversation:
    """A new question within a conversation."""
    question = check_reply(question)
    turn = Turn(question, Intent(QUESTION, question=question), READINGS)
    return _asked(Exchange(pipeline, conversation, policy, limits), turn)


def _asked(exchange: Exchange, turn: Turn, found: Case | None = None) -> Conversation:
    """The conversation with the answer to a turn's question, or with the question back; `found` is what was found."""
    case = found or find(exchange.pipeline, turn.intent.question, exchange.limits)
    if not turn.intent.named:
        case, turn = _in_topic(exchange, turn, case)
    turn = replace(turn, readings=case.readings)
    if case.readings:
        turn = exchange.ask_back(turn, case)
    else:
        turn = replace(turn, shown=NOTHING)
    return replace(exchange.conversation, case=case).with_turn(turn)


def _in_topic(exchange: Exchange, turn: Turn, case: Case) -> tuple[Case, Turn]:
    """A question that may be about what was meant before: what was found for it, about that; and what it means."""
    topic, intent = topic_of(exchange.conversation), turn.intent
    pipeline, limits, said = exchange.pipeline, exchange.limits, turn.said
    points_back = intent.question != without_greeting(said)
    if not topic.name or not (points_back or leans(said)):
        return case, turn
    for question in resolutions(without_greeting(said), topic)[1:]:
        if not case.readings and question != intent.question:
            case = find(pipeline, question, limits)
            intent = replace(intent, question=question)
    about = in_context(pipeline, case, topic, points_back, limits)
    if about is None:
        return case, replace(turn, intent=intent)
    by_name = about.question != intent.question
    return about, replace(
        turn,
        intent=replace(intent, named=topic.name),
        message=f"Taken as: {topic.name}." if by_name else "",
    )


def reply(
    pipeline: Pipeline,
    conversation: Conversation,
    text: str,
    *,
    policy: AskingPolicy = _ASKING,
    limits: Limits = _NO_LIMITS,
) -> Conversation:
    """The next turn: a reply to the pending clarification, a later choice among its options, or a new question."""
    said = to_the_point(check_reply(text))
    exchange = Exchange(pipeline, conversation, policy, limits)
    intent = _intent_of(said, conversation)
    turn = Turn(said, intent, READINGS)
    if intent.kind == QUESTION:
        return _asked(exchange, turn)
    sure = _SURE if len(intent.options) < 2 else _SURE_OF_SEVERAL
    if intent.kind == UNCLEAR or (intent.kind == CHOOSE and intent.score < sure):
        return _with_own_words(exchange, turn)
    return conversation.with_turn(exchange.answer(turn))


def _with_own_words(exchange: Exchange, turn: Turn) -> Conversation:
    """The next turn for a reply in words that no option has, or has in part: what they name is searched for."""
    conversation, said = exchange.conversation, turn.said
    is_open = conversation.last.pending or turn.intent.kind == CHOOSE
    offered = _offered_before(said, conversation)
    if not offered and not says_something(said):
        answered = replace(turn, shown=MORE, message=_NEXT)
        return conversation.with_turn(exchange.answer(turn) if is_open else answered)
    if not (is_open or offered or _goes_on(said, conversation)):
        intent = Intent(QUESTION, question=resolved(said, topic_of(conversation)))
        return _asked(exchange, replace(turn, intent=intent))
    return _looked_for(exchange, turn, offered, is_open and not continues(said))


def _looked_for(exchange: Exchange, turn: Turn, offered: str, chooses: bool) -> Conversation:
    """The next turn with what a reply's words, or the option that they name, find; with the options that they fit in
    part if a person `chooses`, else with the answer to a question about them."""
    conversation, said = exchange.conversation, turn.said
    words = offered or own_words(said)
    questions = _questions_of(said, offered, topic_of(conversation))
    intent, found, readings = _search(exchange, words, questions)
    if readings:
        return _taken_as(exchange, replace(turn, intent=intent, readings=readings), found)
    if chooses:
        return conversation.with_turn(exchange.answer(_without_others(exchange, turn)))
    return _asked(exchange, replace(turn, intent=replace(intent, kind=QUESTION)), found)


def _questions_of(said: str, offered: str, topic: Topic) -> list[str]:
    """The questions that a few words may mean, the likeliest first; `offered` is the option that they name."""
    first = about(topic, offered) if offered else completed(said, topic)
    second = instead(offered or own_words(said), topic) if goes_on(said) else ""
    return list(filter(None, (first, second)))


def _taken_as(exchange: Exchange, turn: Turn, found: Case | None) -> Conversation:
    """The next turn with the reading that a reply's words name."""
    case = exchange.case if exchange.case.readings or not found else found
    message = f"Taken as: {turn.intent.named}."
    turn = replace(turn, shown=ANSWER, message=message)
    return replace(exchange.conversation, case=case).with_turn(turn)


def _search(
    exchange: Exchange, words: str, questions: Sequence[str]
) -> tuple[Intent, Case | None, tuple[Reading, ...]]:
    """What a reply's words are taken for, what the first question with them that has answers finds, and the reading
    that they name."""
    wanted = exchange.own_stems(words)
    intent = Intent(REFINE, question=questions[0], named=words)
    if not wanted or len(words.split()) > _LONGEST:
        return intent, None, ()
    for question in questions:
        intent = replace(intent, question=question)
        found = find(exchange.pipeline, question, exchange.limits)
        for case in (found, exchange.case):
            named = naming(wanted, case, anywhere=True)
            if named:
                return intent, found, tuple(named[:1])
        spoken = tuple(
            one
            for one in found.readings
            if speaks_of(words, one) and not is_of_another(wanted, one)
        )
        if spoken:
            break
    return intent, replace(found, readings=spoken), ()


def _without_others(exchange: Exchange, turn: Turn) -> Turn:
    """A choice in uncertain words, without options of which its words are said to be another's."""
    wanted = stems(turn.said)
    options = [exchange.option(one) for one in turn.intent.options]
    kept = tuple(
        one.id for one in options if not any(is_of_another(wanted, r) for r in one.readings)
    )
    if kept == turn.intent.options:
        return turn
    kind = CHOOSE if kept else UNCLEAR
    return replace(turn, intent=replace(turn.intent, kind=kind, options=kept))


def _offered_before(said: str, conversation: Conversation) -> str:
    """The name of the one option of an earlier question that words choose; empty if they choose none."""
    if conversation.last.pending or not goes_on(said):
        return ""
    for turn in reversed(conversation.turns):
        offered = turn.clarification
        if offered is None:
            continue
        intent = understand(said, offered, turn.intent.question, conversation.chosen)
        if intent.kind == CHOOSE and len(intent.options) == 1 and intent.score >= _SURE:
            chosen = next(one for one in offered.options if one.id in intent.options)
            return name_of(chosen, turn.intent.question, said)
    return ""


def _goes_on(said: str, conversation: Conversation) -> bool:
    """Whether words are about the last question; what follows one without an answer is."""
    hits = conversation.case.hits if conversation.case else ()
    evidence = " ".join(f"{hit.passage.title} {hit.passage.text}" for hit in hits)
    return conversation.last.shown == NOTHING or is_elliptical(said, evidence)


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
    exchange = Exchange(pipeline, conversation, policy, limits)
    labels = [exchange.option(one).label for one in options]
    intent = Intent(CHOOSE, tuple(options)) if options else Intent(SKIP)
    turn = Turn(", ".join(labels), intent, READINGS)
    return conversation.with_turn(exchange.answer(turn))


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
    case, topic = conversation.case, topic_of(conversation)
    if case is None:
        return Intent(QUESTION, question=said)
    asks = is_question(plain(said))
    part, thing = _part_of(said, conversation, topic)
    if part:
        return Intent(QUESTION, question=part, named=thing)
    clarification = conversation.clarification or offer_each(case.readings)
    intent = understand(said, clarification, case.question, conversation.chosen)
    if intent.kind == QUESTION:
        return replace(intent, question=resolved(intent.question, topic))
    if not conversation.clarification and intent.kind not in (NONE, ABOUT):
        # There was no choice: what is not against the answer, or about it, is about another one.
        is_asked = asks and not proposal(plain(said))
        return Intent(QUESTION, question=said) if is_asked else Intent(UNCLEAR, score=0.0)
    return intent


def _part_of(said: str, conversation: Conversation, topic: Topic) -> tuple[str, str]:
    """The question of which a person says a part, and what it names; empty strings where all of it is said."""
    if conversation.last.shown == MORE and says_something(said) and not is_question(plain(said)):
        return completed(said, topic), ""
    part, thing = fronted(said, topic)
    if not part and not conversation.last.pending:
        part = fragment(said, topic)
    return part, thing


def _case_of(conversation: Conversation) -> Case:
    if conversation.case is None:
        raise BadInput("Nothing was asked yet. Begin with a question.")
    return conversation.case
