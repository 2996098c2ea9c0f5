"""Telling duplicates: as a set would, through growth and through checkpoints."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whichsense.corpus import Seen


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=2), st.text(max_size=2))), st.integers(0, 50))
def test_as_a_set_would(pairs, stop):
    seen, told = Seen(), set()
    for number, (title, text) in enumerate(pairs):
        if number == stop:
            seen = Seen.from_array(seen.to_array())
        key = f"{title}\n{text}"
        assert seen.new(title, text) == (key not in told)
        told.add(key)
    assert len(seen) == len(told) == len(seen.to_array())


def test_many():
    seen = Seen()
    assert all(seen.new("t", str(number)) for number in range(50_000))
    again = Seen.from_array(seen.to_array())
    assert not any(again.new("t", str(number)) for number in range(50_000))
    assert np.array_equal(again.to_array(), seen.to_array()) and seen.to_array().dtype == np.uint64


def test_a_run_beyond_the_last_home():
    """Hashes that all want the last place: the table makes room behind it."""
    top = np.arange(2**64 - 600, 2**64 - 1, dtype=np.uint64)
    seen = Seen.from_array(top)
    assert np.array_equal(seen.to_array(), top) and len(seen) == len(top)
