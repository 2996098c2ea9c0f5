"""Parts that load on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_Value = TypeVar("_Value")


class once(Generic[_Value]):
    """A cached property that threads compute once.

    Each object has a lock for each of its parts: two models load at the same time, and nobody waits for a part that it
    does not need. `functools.cached_property` has one lock for all objects in Python 3.11, and none from 3.12 on.
    """

    def __init__(self, load: Callable[[Any], _Value]) -> None:
        self._load = load
        self.__doc__ = load.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...

    def __get__(self, instance: object | None, owner: type) -> Self | _Value:
        if instance is None:
            return self
        values = vars(instance)
        # setdefault is atomic: all threads get the same lock.
        lock = values.setdefault(f"_lock_of_{self._name}", threading.RLock())
        with lock:
            if self._name not in values:
                values[self._name] = self._load(instance)
            value: _Value = values[self._name]
        return value
