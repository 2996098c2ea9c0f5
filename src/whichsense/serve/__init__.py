"""The HTTP service: questions in, cases out, each stage streamed as it ends.

settings.py   what the service is told: index, address, limits
engine.py     the index and the pipeline that answer now; a newer index takes their place under load
answers.py    a bounded queue before the threads that answer; running answers that can be followed and cancelled
events.py     server-sent events
problems.py   errors as problem+json, each with its fix
guard.py      what holds for every request: sizes, hosts, security headers, no stack trace
access.py     who asks: API keys, scopes, rates
telemetry.py  Prometheus counters, OpenTelemetry spans
state/        what is kept: keys, traces, and what the workers of one service share
routes/       one file for each group of paths
page/         the page's static files
app.py run.py one application from these; workers, signals, sockets
"""
