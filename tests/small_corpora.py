"""Small corpora that several tests use by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Corpus = Callable[..., Path]

ANIMALS = [
    (
        "Jaguar",
        "The jaguar is a large cat of the Americas. It swims well and hunts caimans at the river.",
    ),
    (
        "Jaguar Cars",
        "Jaguar is a British maker of cars, founded in Blackpool by William Lyons in 1922.",
    ),
    ("Puma", "The puma, or cougar, is a cat of the Americas that screams but cannot roar."),
    (
        "Puma (brand)",
        "Puma makes shoes in Herzogenaurach, Germany. Rudolf Dassler founded it in 1948.",
    ),
]
