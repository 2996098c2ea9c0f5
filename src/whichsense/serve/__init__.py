"""The service: questions in, cases out, each stage streamed as it ends.

settings.py   what the service is told: index, address, limits
answering/    the index and the pipeline that answer now; a bounded queue before them; answers that run; replies
events.py     server-sent events
problems.py   errors as problem+json, each with its fix
guard.py      what holds for every request: sizes, hosts, security headers, no stack trace
access.py     who asks: API keys, scopes, rates
telemetry.py  Prometheus counters, OpenTelemetry spans
state/        what is kept: keys, traces, conversations, and what the workers of one service share
recall.py     searches that were answered before
service.py    all of these for one worker: what routes, and other protocols, call
schemas/      requests and responses as OpenAPI describes them
routes/       one file for each group of paths
openai/       the same for clients of OpenAI's API
documents.py  files into the index and out of it
page/         the page's static files
mcp/          the Model Context Protocol: tools for models
lifetime.py   a service from its start to its end
protocol.py   HTTP on the wire, with a bound on the head of a request
app.py run.py one application from these; workers, signals, sockets
"""
