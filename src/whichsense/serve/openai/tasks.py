"""Prompts that chat programs send on their own: titles, tags, follow-ups. They are answered at once, without a search.

Open WebUI asks them of the model that is chosen, as chats that begin with "### Task:". The form of the answer is the
first JSON object in the prompt; what was said stands between <chat_history> and </chat_history>. LibreChat asks for a
title in one sentence, with what was said behind it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from whichsense.serve.openai.history import ASSISTANT, USER, Message
from whichsense.serve.openai.turns import options_in

_BEGIN = "### Task:"
_FORM = re.compile(r"\{\s*\"(\w+)\"\s*:\s*([\[\"])")
_HISTORY = re.compile(r"<chat_history>\n?(.*?)\n?</chat_history>", re.DOTALL)
_ROLE = re.compile(r"^(USER|ASSISTANT|SYSTEM|TOOL|User|AI): ", re.MULTILINE)
# LibreChat's own words.
_BARE_TITLE = re.compile(
    r"Provide a concise, 5-word-or-less title for the conversation\b.*?^Conversation:\n(.*)",
    re.DOTALL | re.MULTILINE,
)
_QUERY = re.compile(r"<user_query>(.*?)</user_query>", re.DOTALL)
_CONTEXT_END = "</context>"
_LONGEST_TITLE = 80


def answer_task(text: str) -> str | None:
    """The answer to such a prompt; None for what a person says.

    >>> history = "<chat_history>\\nUSER: Who won?\\n</chat_history>"
    >>> answer_task('### Task:\\nWrite a title. JSON format: { "title": "…" }\\n' + history)
    '{"title": "Who won?"}'
    >>> answer_task('### Task:\\nTags. JSON format: { "tags": ["tag1"] }')
    '{"tags": []}'
    """
    bare = _BARE_TITLE.match(text.lstrip())
    if bare is not None:
        return _title(list(_messages(bare[1])))
    if not text.lstrip().startswith(_BEGIN) or _CONTEXT_END in text:
        return None
    block = _HISTORY.search(text)
    history = list(_messages(block[1])) if block else []
    title = _title(history)
    form = _FORM.search(_HISTORY.sub("", text))
    if form is None:
        return title if "title" in text.partition("\n###")[0].lower() else ""
    key, is_list = form[1], form[2] == "["
    if key == "title":
        return json.dumps({key: title}, ensure_ascii=False)
    if key == "follow_ups":
        return json.dumps({key: _options(history)}, ensure_ascii=False)
    return json.dumps({key: [] if is_list else ""})


def question_in(text: str) -> str:
    """What a person asks. Open WebUI writes documents that a person has attached before it.

    >>> question_in("### Task:\\nUse the context.\\n<context>\\n…\\n</context>\\n\\nWho won?")
    'Who won?'
    """
    if not text.lstrip().startswith(_BEGIN):
        return text
    query = _QUERY.search(text)
    if query is not None:
        return query[1].strip()
    return text.rpartition(_CONTEXT_END)[2].strip()


def _messages(history: str) -> Iterator[Message]:
    # The text before the first role, then a role and its text in turns.
    parts = _ROLE.split(history)
    for role, said in zip(parts[1::2], parts[2::2], strict=True):
        yield Message(role.lower(), said.strip())


def _title(history: list[Message]) -> str:
    """The first thing that the person said."""
    for message in history:
        if message.role == USER:
            line = " ".join(message.text.split())
            if len(line) <= _LONGEST_TITLE:
                return line
            return line[:_LONGEST_TITLE].rsplit(" ", 1)[0] + " …"
    return ""


def _options(history: list[Message]) -> list[str]:
    """The options of the question back, if that was the last thing said."""
    if not history or history[-1].role != ASSISTANT:
        return []
    return options_in(history[-1].text)
