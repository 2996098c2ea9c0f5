"""Conversations: a question, the question back, replies, the answer that was meant.

>>> from whichsense.pipeline import Pipeline
>>> from whichsense.testing import FakeDisambiguator, FakeReader, FakeRetriever, passage_hit
>>> hits = [passage_hit("Ann wrote it.", "Dune (novel)"), passage_hit("Bob wrote it.", "Dune (film)")]
>>> reader = FakeReader({"Ann": "Ann", "Bob": "Bob"})
>>> pipeline = Pipeline(FakeRetriever(hits), reader=reader, disambiguator=FakeDisambiguator())
>>> conversation = begin(pipeline, "Who wrote it?")
>>> conversation.last.shown
'clarification'
>>> [reading.answer for reading in reply(pipeline, conversation, "the film").last.readings]
['Bob']
"""

from whichsense.conversation.dialogue import (
    AskingPolicy,
    ask,
    begin,
    choose,
    explain,
    reply,
    show_readings,
)
from whichsense.conversation.replies import understand
from whichsense.conversation.turns import Conversation, Intent, ServedConversation, Turn

__all__ = [
    "AskingPolicy",
    "Conversation",
    "Intent",
    "ServedConversation",
    "Turn",
    "ask",
    "begin",
    "choose",
    "explain",
    "reply",
    "show_readings",
    "understand",
]
