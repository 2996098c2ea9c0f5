"""The OpenAI-compatible face: chat programs and agents that speak to a language model ask, and are asked back.

models.py     the names under which it is asked, and what each does; GET /v1/models
requests.py   bodies of requests; parameters that cannot be honoured are refused
history.py    what was said so far, from the messages that a client repeats; the conversation that they belong to
writing.py    Markdown whose numbers in brackets are citations with their place
turns.py      a turn of a conversation as Markdown
answers.py    the work for the queue: find the conversation or hold it again, answer, keep it
entry.py      from a request to its answer on the way
tasks.py      titles, tags and follow-ups that chat programs ask of the same model
open_webui.py what Open WebUI shows beside the text: stages, sources, options to click
streams.py    server-sent events that stop the work when the client goes
chat.py       POST /v1/chat/completions
responses.py  POST /v1/responses
shapes.py     what clients get, for the OpenAPI description
"""
