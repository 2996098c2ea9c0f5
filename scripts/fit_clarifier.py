"""Fit the compact clarifier's rankers to CAmbigNQ's part_train and write models/compact/clarification/weights.json.

    python scripts/fit_clarifier.py            # a few minutes on one core; WHICHSENSE_DATA names the data folder

The part itself is not shipped: no licence is stated for it. Weights are of forms, function words and frequent words.
"""

from __future__ import annotations

import sys

from whichsense import datasets
from whichsense.lab.compact.clarification_fitting import fit_rankers
from whichsense.models.compact.phrases import WEIGHTS


def main() -> None:
    rankers = fit_rankers(list(datasets.load("cambignq/part_train")))
    rankers.save(WEIGHTS)
    count = len(rankers.options.weights) + len(rankers.leads.weights)
    sys.stdout.write(f"{count} weights: {WEIGHTS}\n")


if __name__ == "__main__":
    main()
