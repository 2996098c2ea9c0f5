"""Complete what leans on the conversation: "and when was it released?", "and in Finland?", "I'm a student"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from whichsense.conversation.matching import Token, content, plain, tokenize
from whichsense.conversation.replies import is_question, without_greeting
from whichsense.conversation.turns import (
    ANSWER,
    EXPLANATION,
    NOTHING,
    POSSIBLE,
    QUESTION,
    Conversation,
    Turn,
)
from whichsense.text.reply_words import FILLERS, SIZE_ORDER, TIME_ORDER
from whichsense.text.words import CLOSED_CLASS_WORDS
from whichsense.types import Passage, Reading

_PREPOSITIONS = frozenset(
    "in on at for from to during with by of before after since until under as".split()
)
_ARTICLES = ("the", "a", "an")
_POSSESSIVES = ("its", "his", "her", "their")
# The pronoun by which a question leans on what was said; a name before it is what it stands for.
_PERSON = re.compile(r"\b(he|she|him|her|his|hers)\b", re.IGNORECASE)
_THINGS = re.compile(r"\b(they|them|their)\b", re.IGNORECASE)
_THING = re.compile(  # "What does it cost to store a pallet?" is about no "it"
    r"\b(?:its?\b(?!['’]| (?:cost|take)s?\b.* to\b)|(?:this|that)(?: one)?(?=[\s?.!]*$))",
    re.IGNORECASE,
)
_PLACE = re.compile(r"(?<!is )(?<!are )(?<!was )(?<!were )\bthere\b", re.IGNORECASE)
_PRONOUNS = (_PERSON, _THINGS, _THING, _PLACE)
_NAME = re.compile(r"[A-Z][\w'’-]*(?: (?:(?:of|the|and|de|la|von|van) )*[A-Z0-9][\w'’-]*)*")
_NAMED_THING = re.compile(rf"\b(?:(?:the|an?) )?{_NAME.pattern}")
_NUMBER_OF_OPTION = re.compile(r"\d{1,2}[.)]?")
_FIRST_WORDS = re.compile(r"^\W*\w+")
_KIND = re.compile(r"(?:\d\S* )?[a-z]")  # what a title's brackets say of a thing
_LAST_PHRASE = re.compile(r" (in|on|at|for|of|from) (?:the )?([A-Z][\w'-]*(?: [A-Z][\w'-]*)*|\d+)$")
_NEW = re.compile(r"\b(?:is|are|was|were) an? (\w[\w -]*)", re.IGNORECASE)
_CONTINUES = re.compile(r"^(?:and|or|but|what about|how about)\b", re.IGNORECASE)
_OF_MYSELF = re.compile(r"^(?:i|we) (?:am|are|m|re) |^im ")
_INTERROGATIVE = re.compile(
    r"(?:(?:how (?:many|much)|which|what) (?P<noun>[\w ]+?)|\w+(?: \w+)?) "
    r"(?P<verb>can|may|must|do|does|did|is|are|was|were|will)(?P<rest> .*)",
    re.IGNORECASE,
)
_FRONTED = re.compile(
    r"(?:(?:and|but|what about|how about) )?(?P<thing>[^,?]+), (?P<question>.+)", re.IGNORECASE
)
_OWNED = re.compile(r"(?:and )?((?:its|their|his|her) [^?.!]+)[?.!]*", re.IGNORECASE)
_BARE_INTERROGATIVE = re.compile(
    r"(?:and )?((?:\w+ )?(?:when|where|why|who|how(?: \w+)?))[?]?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Topic:
    """What a conversation is about: what was meant last, by which words, and what was asked of it."""

    question: str = ""
    """The last question that is whole in the person's own words."""
    asked: str = ""
    """The same as it was completed: without pronouns."""
    named: str = ""
    """The words that named what was meant: "the 2019 film", "for contractors"."""
    readings: tuple[Reading, ...] = ()
    """What was answered."""

    @property
    def name(self) -> str:
        """Return what it is called: what "it" stands for, unless other words named it; empty if nothing is known."""
        thing = self.thing if self.readings else ""
        is_thing = self._is_pointed or stems(_bare(self.named)) <= stems(thing)
        return thing if thing and is_thing else self.named

    @property
    def titles(self) -> frozenset[str]:
        """Return the titles of the passages that the answers rest on."""
        return frozenset(filter(None, map(_title, self.readings)))

    @property
    def passage(self) -> Passage | None:
        """Return the passage of the first answer; None if it has none."""
        spans = self.readings[0].evidence if self.readings else ()
        return spans[0].passage if spans else None

    @property
    def answer(self) -> str:
        """Return the only answer if it is a name, else an empty string."""
        answers = [reading.answer for reading in self.readings]
        return answers[0] if len(answers) == 1 and answers[0][:1].isupper() else ""

    @property
    def thing(self) -> str:
        """Return what "it" stands for: the subject of the passage, what was named, or a phrase of the question."""
        title, named = self._title, self.named
        subject = subject_of(self.passage) if self.passage and title else ""
        if subject and stems(_bare(named)) <= stems(subject):
            return self._asked_beside(subject, title) or subject
        if self._is_name:
            return named
        phrase = self.phrase
        if self._is_case:
            # The question's word for it, or what else its document is about.
            known = (subject, phrase) if stems(phrase) <= stems(title) else (phrase, subject)
        else:
            known = (phrase, named) if self._is_source else (subject, named)
        return next(filter(None, (*known, _name_in(self.question), phrase)), "")

    @property
    def _title(self) -> str:
        """The title of the only document that the answers rest on."""
        return next(iter(self.titles)) if self.passage and len(self.titles) < 2 else ""

    def _asked_beside(self, subject: str, title: str) -> str:
        """The phrase of the question that a document is about, where its title begins with another name: a firm's."""
        asked = stems(self.phrase)
        is_beside = (
            not self.named and title.startswith(subject) and asked.isdisjoint(stems(subject))
        )
        return self.phrase if is_beside and asked <= stems(title) else ""

    @property
    def _is_name(self) -> bool:
        """Whether the words that named it are its name."""
        is_name = _bare(self.named)[:1].isupper() and not self._is_case
        return is_name and not self._is_source and not self._is_pointed

    @property
    def _is_case(self) -> bool:
        """Whether the words that named it are a case of it: "for contractors"."""
        return _opens(self.named, _PREPOSITIONS)

    @property
    def _is_source(self) -> bool:
        """Whether it was named by a document's title, which says nothing of what was asked."""
        title = self._title
        is_source = bool(title) and title == self.named and self.answer not in title
        return is_source and stems(title).isdisjoint(stems(self.question))

    @property
    def _is_pointed(self) -> bool:
        """Whether the words name it only among others: "the Peter Jackson one"."""
        return self.named.rpartition(" ")[2] in FILLERS

    @property
    def things(self) -> str:
        """Return what "they" stands for: several things of the question, those that were named, or the answer."""
        for phrase in (self.phrase, _bare(self.named)):
            if phrase.endswith("s"):
                return phrase
        return self.answer or self.thing

    @property
    def place(self) -> str:
        """Return where "there" is, with its preposition."""
        if self.passage and self.answer == self.passage.title:
            return f"in {self.answer}"
        if _opens(self.named, _PREPOSITIONS):
            return self.named
        name = max(_NAME.findall(self.named), key=len, default="")
        return f"in {name}" if name else ""

    @property
    def phrase(self) -> str:
        """Return the longest phrase of the question that the passage has, too: "access codes"."""
        if self.passage is None:
            introduced = _NEW.search(self.question)
            return f"the {introduced[1]}" if introduced else ""
        asked = tokenize(plain(self.question))
        words, kept = _joined(asked), {token.text for token in content(asked)}
        text = _joined(tokenize(plain(self.passage.text)))
        runs = map(" ".join, filter(kept.issuperset, _runs(words.split())))
        name = plain(_name_in(self.question))
        found = next((run for run in runs if f" {run} " in text), "")
        if f" {name} " in text and name.count(" ") > found.count(" "):
            found = name
        return f"the {found}" if found and f" the {found} " in words else found


def topic_of(conversation: Conversation) -> Topic:
    """Return what was meant last. Nothing was, where several readings are shown of a question that was about nothing
    before, and after a question of its own that was not answered."""
    question, asked = _whole_question(conversation)
    named = ""
    for turn in reversed(conversation.turns):
        own = turn.intent.named
        if _is_answered(turn):
            if named in ("", own):
                return Topic(question, asked, own, turn.readings)
            break
        if turn.shown != EXPLANATION and (turn.shown != NOTHING or not own):
            break
        named = named or own
    return Topic(question, asked, named)


def _is_answered(turn: Turn) -> bool:
    return turn.shown in (ANSWER, POSSIBLE) or bool(turn.readings and turn.intent.named)


def _whole_question(conversation: Conversation) -> tuple[str, str]:
    """The last whole question in the person's words, and as it was completed."""
    for turn in reversed(conversation.turns):
        said, asked = turn.said, turn.intent.question
        if turn.intent.kind != QUESTION:
            continue
        if is_question(plain(said)) or asked == said:
            return without_greeting(said), asked
        if _OWNED.fullmatch(said) or _BARE_INTERROGATIVE.fullmatch(said):
            return asked, asked
    first = conversation.case.question if conversation.case else ""
    return first, first


def resolved(question: str, topic: Topic) -> str:
    """Return the question with its pronoun replaced by what it stands for; as it is if that is not known.

    >>> resolved("where was she born?", Topic(readings=(Reading("Who wrote it?", "Ann Lee"),)))
    'where was Ann Lee born?'
    """
    return next(iter(resolutions(question, topic)), question)


def resolutions(question: str, topic: Topic) -> list[str]:
    """Return the question with its pronoun replaced by each that it may stand for, the likeliest first: "her" is who
    was the answer, or who was asked about; "it" is the thing, or what named it."""
    person = topic.answer or topic.thing, _name_in(topic.question)
    if not stems(question).isdisjoint(stems(topic.question)):
        person = person[::-1]  # "Who plays Anita?", "and who played her in the musical?"
    thing = topic.thing, _bare(topic.named)
    names = (person, (topic.things,), thing, (topic.place,))
    for pattern, known in zip(_PRONOUNS, names, strict=True):
        pronoun = pattern.search(question)
        if pronoun:
            return [_replaced(question, pronoun, name) for name in dict.fromkeys(known) if name]
    return []


def _replaced(question: str, pronoun: re.Match[str], name: str) -> str:
    before = question[: pronoun.start()]
    if pronoun[0].lower() not in ("it", "this", "that") and not leans(before):
        return question  # "When did Apple move its headquarters?"
    after = question[pronoun.end() :]
    if pronoun[0].lower() in _POSSESSIVES and after.strip(" ?"):
        follows = tokenize(plain(after))
        is_object = pronoun[0].lower() == "her" and follows[0].text in CLOSED_CLASS_WORDS
        if follows and not is_object:
            name = f"{name}'" if name.endswith("s") and name.islower() else f"{name}'s"
    return f"{before}{name}{after}"


def leans(question: str) -> bool:
    """Say whether a question names nothing itself, so that it is about what was meant before.

    >>> leans("how much is the deposit?"), leans("and when was Windows 10 released?")
    (True, False)
    """
    return not names_something(_FIRST_WORDS.sub("", question))


def names_something(text: str) -> bool:
    """Say whether a text has a word with a capital, or a number."""
    return bool(names_of(text))


def names_of(text: str) -> frozenset[str]:
    """Return the words with a capital and the numbers of a text."""
    words = re.findall(r"\w+", text)
    return frozenset(word for word in words if word != "I" and re.match(r"[A-Z]|.*\d", word))


def completed(said: str, topic: Topic) -> str:
    """Return the question that a person means by a few words: the last one, about these. A case that was named before
    is kept beside one of another kind: "for adults", "in 2025".

    >>> topic = Topic("How much does it cost?")
    >>> completed("and the Plover?", topic), completed("for schools", topic)
    ('How much does the Plover cost?', 'How much does it cost for schools?')
    """
    words = own_words(said)
    before, now = topic.named.partition(" ")[0].lower(), words.partition(" ")[0].lower()
    adds = before != now and now in _PREPOSITIONS and (now == "to" or not goes_on(said))
    if adds and topic.named and not stems(topic.named) <= stems(topic.asked):
        return narrowed(narrowed(topic.asked, topic.named), words)
    return about(topic, words)


def instead(words: str, topic: Topic) -> str:
    """Return the last question with what it is about replaced by other words; empty if that is not known."""
    phrase = topic.phrase
    found = re.search(rf"\b{re.escape(phrase)}\b", topic.asked, re.IGNORECASE) if phrase else None
    return f"{topic.asked[: found.start()]}{words}{topic.asked[found.end() :]}" if found else ""


def fronted(said: str, topic: Topic) -> tuple[str, str]:
    """Return a question after the thing that it is about, and this thing; empty strings if it is none.

    >>> fronted("and the prime minister, when did he die?", Topic())
    ('when did the prime minister die?', 'the prime minister')
    """
    parts = _FRONTED.fullmatch(said)
    if not parts or is_question(plain(parts["thing"])) or not is_question(plain(parts["question"])):
        return "", ""
    question = resolved(parts["question"], replace(topic, named=parts["thing"], readings=()))
    return (question, parts["thing"]) if question != parts["question"] else ("", "")


def fragment(said: str, topic: Topic) -> str:
    """Return the question of which a person says a part, "and where?" or "its price?"; empty if it is none.

    >>> topic = Topic("When does it open?", named="the Plover")
    >>> fragment("and where?", topic), fragment("its price?", topic), fragment("the film", topic)
    ('where does the Plover open?', "What is the Plover's price?", '')
    """
    owned = _OWNED.fullmatch(said)
    if owned:
        return resolved(f"What is {owned[1]}?", topic)
    asked = _BARE_INTERROGATIVE.fullmatch(said)
    whole = _INTERROGATIVE.match(topic.question)
    if not asked or not whole:
        return ""
    noun = f" {whole['noun']}" if whole["noun"] else ""
    return resolved(f"{asked[1]} {whole['verb']}{noun}{whole['rest']}", topic)


def about(topic: Topic, words: str) -> str:
    """Return the last question about the thing, the place or the case that words name."""
    question = topic.question
    is_phrase = _opens(words, _PREPOSITIONS)
    for pattern in _PRONOUNS:
        pronoun = pattern.search(question)
        if pronoun is None:
            continue
        before = question[: pronoun.start()]
        if pattern is _PLACE or (is_phrase and _opens(words, before.lower().split()[-1:])):
            place = words if is_phrase else f"in {words}"
            before = before.removesuffix(f"{words.split(maxsplit=1)[0]} ") if is_phrase else before
            return f"{before}{place}{question[pronoun.end() :]}"
        if not is_phrase:
            return _replaced(question, pronoun, words)
    return narrowed(topic.asked or question, words)


def narrowed(question: str, words: str, link: str = ",") -> str:
    """Return a question with words at its end; a phrase of the same kind there gives way to them.

    `link` is what comes before words that have no preposition.

    >>> narrowed("Who won?", "in 2008"), narrowed("When did it come out?", "the book")
    ('Who won in 2008?', 'When did it come out, the book?')
    >>> narrowed("how heavy is the skerry", "Skerry 48")
    'how heavy is the skerry 48?'
    >>> narrowed("When did it open on Broadway?", "in the West End")
    'When did it open in the West End?'
    >>> narrowed("How loud is the Skerry 24 at night?", "the Skerry 12")
    'How loud is the Skerry 12 at night?'
    """
    bare = question.rstrip(" ?")
    first, _, rest = words.partition(" ")
    if rest and bare.lower().endswith(f" {first.lower()}"):
        return f"{bare} {rest}?"
    is_case = first.lower() in _PREPOSITIONS
    for name in _NAMED_THING.finditer(bare):
        if not stems(name[0]).isdisjoint(stems(words)):
            return f"{bare[: name.start()]}{rest if is_case else words}{bare[name.end() :]}?"
    if is_case:
        return f"{_without_case(bare, words)} {words}?"
    return f"{bare}{link if link == ',' else f' {link}'} {words}?"


def _without_case(question: str, words: str) -> str:
    """A question without the phrase at its end, where words are a phrase of the same kind."""
    last, same = _LAST_PHRASE.search(question), _LAST_PHRASE.search(f" {words}")
    is_same = last and same and last[2].isdigit() == same[2].isdigit()
    return question[: last.start()] if last and is_same else question


def is_elliptical(said: str, known: str) -> bool:
    """Say whether words go on with the last question. `known` is the text of its evidence: what is named there is
    about it; "the capital of France" is not."""
    words = own_words(said).split()
    if len(words) <= 2 or _CONTINUES.match(said) or _opens(words[0], _PREPOSITIONS):
        return True
    return bool(stems(said) & stems(known))


def continues(said: str) -> bool:
    """Say whether words go on with the last question by a name of their own: "and the Heron 450?"."""
    return goes_on(said) and names_something(own_words(said))


def goes_on(said: str) -> bool:
    """Say whether words go on with the last question: "and the older one?"."""
    return bool(_CONTINUES.match(said))


def to_the_point(said: str) -> str:
    """Return a question without the sentences before it that say nothing.

    >>> to_the_point("Thanks! And what does it weigh?"), to_the_point("ok. the film")
    ('And what does it weigh?', 'ok. the film')
    """
    first, *rest = re.split(r"(?<=[.!]) ", said, maxsplit=1)
    is_asked = bool(rest) and is_question(plain(rest[0])) and not says_something(first)
    return rest[0] if is_asked else said


def own_words(said: str) -> str:
    """Return a reply without the words before its own, and without its mark.

    >>> own_words("and in Uruguay?"), own_words("What about Estate?"), own_words("I'm an administrator")
    ('in Uruguay', 'Estate', 'for an administrator')
    """
    words = said.rstrip(" ?.!").split()
    count = len(words)
    start = next((n for n in range(count) if _is_own(words[n])), count)
    if count > 1 and start == count - 1 and len(words[start]) == 1:
        start -= 1  # "version B"
    own = " ".join(words[start:])
    if _OF_MYSELF.match(plain(said)) and _opens(own, _ARTICLES):
        return f"for {own}"
    return own or said


def _is_own(word: str) -> bool:
    """Whether a word begins what a reply says: a preposition, an article, or no filler."""
    parts = [part.strip(",.:;") for part in plain(word).split()]
    opens = parts[:1] and (parts[0] in _PREPOSITIONS or parts[0] in _ARTICLES)
    return bool(opens) or not FILLERS.issuperset(parts)


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


def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's own words: neither function words nor words around a choice."""
    tokens = content(tokenize(plain(text)))
    return frozenset(token.stem for token in tokens if token.text not in FILLERS)


def subject(text: str) -> Sequence[Token]:
    """Return the words for what a question asks about: those after its first article, up to a function word, else all
    that are its own.

    >>> [token.text for token in subject("who wrote the music of it?")], [token.text for token in subject("who won")]
    (['music'], ['won'])
    """
    tokens = tokenize(plain(text))
    own = [token for token in content(tokens) if token.text not in FILLERS]
    for place, token in enumerate(tokens):
        if token.text in _ARTICLES:
            behind = takewhile(own.__contains__, tokens[place + 1 :])
            return list(behind) or own
    return own


def subject_of(passage: Passage) -> str:
    """Return what a passage is about: as much of its title as its text has, with the kind in the title's brackets.

    >>> subject_of(Passage("1", "Dune (2021 film)", "Denis Villeneuve directed the 2021 film of Dune."))
    'the 2021 film Dune'
    >>> subject_of(Passage("2", "Tarnbeck Plover: Data Sheet", "The Plover is an open canoe."))
    'the Plover'
    """
    title, _, bracket = passage.title.partition(" (")
    text = passage.text.removeprefix(passage.title)
    head = re.split(r"[:,]", title)[0]
    for name in (title, *map(" ".join, _runs(head.split()))):
        if name[:1].isupper() and re.search(rf"\b{re.escape(name)}\b", text):
            break
    else:
        return ""
    if _KIND.match(bracket):
        return f"the {bracket.rstrip(')')} {name}"
    return f"the {name}" if re.search(rf"\b[Tt]he {re.escape(name)}\b", text) else name


def _joined(tokens: Sequence[Token]) -> str:
    return f" {' '.join(token.text for token in tokens)} "


def _runs(words: Sequence[str]) -> list[Sequence[str]]:
    """Every run of words, the longest first."""
    count = len(words)
    spread = [(start, size) for size in range(count, 0, -1) for start in range(count - size + 1)]
    return [words[start : start + size] for start, size in spread]


def _title(reading: Reading) -> str:
    return reading.evidence[0].passage.title if reading.evidence else ""


def _name_in(question: str) -> str:
    """The longest name in a question, after its first word."""
    return max(_NAME.findall(_FIRST_WORDS.sub("", question)), key=len, default="")


def _bare(words: str) -> str:
    """Words without the preposition and the article before them."""
    while words and _opens(words, (*_PREPOSITIONS, *_ARTICLES)):
        words = words.partition(" ")[2]
    return words


def _opens(words: str, known: Sequence[str] | frozenset[str]) -> bool:
    return words.partition(" ")[0].lower() in known
