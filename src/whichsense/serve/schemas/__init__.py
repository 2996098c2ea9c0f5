"""Requests and responses as the OpenAPI description has them. pydantic is at this edge only."""
