"""The tasks of the papers' models that the loop trains, one file for each kind."""

from whichsense.errors import require

# Every module here needs torch: fail once, with the way to install it.
require("torch", "train")
