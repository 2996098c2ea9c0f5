"""The service: questions in, cases out, each stage streamed as it ends.

settings.py   what the service is told: index, address, limits; API keys
problems.py   errors as problem+json, each with its fix
guard.py      what holds for every request: sizes, hosts, security headers, no stack trace
telemetry.py  Prometheus counters, OpenTelemetry spans
state.py      what is kept: traces, conversations, uploads
events.py     server-sent events, and what the workers of one service share
answering.py  the index and the pipelines that answer now; a bounded queue before them; answers that run; replies
service.py    all of these for one worker, from its start to its end; who asks
schemas.py    requests and responses as OpenAPI describes them
routes.py     questions, cases, conversations, searches, the state of the service
corpus_routes.py  files into the index and out of it
openai.py     the same for clients of OpenAI's API; openai_turns.py writes turns as Markdown
mcp.py        the Model Context Protocol; mcp_tools.py has its tools, mcp_outputs.py what they take and give
page.py       the page's static files
backup.py     state and indexes saved and restored
app.py        one application from these; workers, signals, sockets
"""
