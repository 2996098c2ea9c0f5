"""Alembic runs this to bring a database up to date, within the transaction that `Database` began."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
