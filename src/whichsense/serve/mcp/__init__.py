"""The Model Context Protocol: the service as tools that a model calls, at /mcp and over stdio.

arguments.py  what tools take, and what is told where they are given something else
outputs.py    what tools give, in small records
json_schema.py  the schemas of both
errors.py     what is told where there is nothing to give
texts.py      the same as a model reads it
calls.py      one call of a tool: who calls, progress, the answer
asking.py     the question back to the person: a form, buttons, or numbered text, by what the client can do
tools.py      the tools
resources.py  passages and the app with buttons (app/), as resources
server.py     a protocol server from these
endpoint.py   it at /mcp
forwarding.py  from worker to worker, for the sessions of older clients
stdio.py      it over standard input and output
"""
