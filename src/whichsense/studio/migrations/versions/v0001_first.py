"""The first tables: items, slots, events, sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_VERSIONED = "kind IN ('save', 'undo', 'submit', 'reopen')"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "items",
        sa.Column("item", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("part", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("gold", sa.Text),
        sa.Column("uncertainty", sa.Float, nullable=False),
        sa.Column("difference", sa.Float, nullable=False),
    )
    op.create_table(
        "slots",
        sa.Column("id", _KEY, primary_key=True, autoincrement=True),
        sa.Column("item", sa.Integer, sa.ForeignKey("items.item"), nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("annotator", sa.Text),
        sa.Column("until", sa.Float, nullable=False),
        sa.Column("done", sa.Boolean, nullable=False),
        sa.UniqueConstraint("item", "slot"),
        sa.UniqueConstraint("item", "annotator"),
    )
    op.create_index("slots_free", "slots", ["done", "slot", "item"])
    op.create_index("slots_of", "slots", ["annotator", "item"])
    op.create_table(
        "events",
        sa.Column("id", _KEY, primary_key=True, autoincrement=True),
        sa.Column("item", sa.Integer, nullable=False),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("events_of", "events", ["item", "annotator", "id"])
    op.create_index("events_by", "events", ["annotator", "kind", "item"])
    op.create_index(
        "events_versions",
        "events",
        ["item", "annotator", "version"],
        unique=True,
        sqlite_where=sa.text(_VERSIONED),
        postgresql_where=sa.text(_VERSIONED),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("member", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("until", sa.Float, nullable=False),
    )
