"""What can be wrong about data. Each message names the thing and the fix."""

from __future__ import annotations

from whichsense.errors import BadInput


class NoDataset(BadInput):
    """No dataset has this name."""


class MissingData(BadInput):
    """The dataset is known, but its file is not in the data folder, or it cannot be fetched."""


class DamagedData(BadInput):
    """The file is there, but it is not what it claims to be: checksum, count or schema."""
