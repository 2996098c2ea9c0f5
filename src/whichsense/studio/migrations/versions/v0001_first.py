"""The first tables are those of `whichsense.studio.database` as a new database gets them."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Change nothing."""
