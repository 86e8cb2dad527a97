"""State variables of a processor that buffer its writes, so that those for one record can be undone.

Each has the interface of PySpark's. Spark's own variables write at once, which nothing reverts. A variable reads
from the store once for each key and batch, and writes once: each access of Spark's is a message to the JVM and back.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.streaming.stateful_processor import ListState, MapState, ValueState
from typing_extensions import override

from spark_app.query.processor.values import ValueCheck, rank

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql.types import StructType

T = TypeVar("T")
Value = tuple[Any, ...]


class StateStoreError(BaseException):
    """Spark did not read a state variable. The batch must fail: this is no `Exception`, which a processor may catch."""


class Journal:
    """The steps that undo what a processor has written since the last record."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def add(self, undo: Callable[[], object]) -> None:
        """Record how to undo the next write."""
        self._steps.append(undo)

    def keep(self) -> None:
        """Make all writes final."""
        self._steps.clear()

    def undo(self) -> None:
        """Undo all writes, the last one first."""
        while self._steps:
            self._steps.pop()()


def stored(read: Callable[[], T]) -> T:
    """Return Spark's value. Raises StateStoreError."""
    try:
        return read()
    except Exception as error:
        raise StateStoreError(str(error)) from error


class BufferedValue(ValueState):
    """A variable with one value."""

    def __init__(self, store: ValueState, name: str, schema: StructType, journal: Journal) -> None:
        self._store = store
        self._checked = ValueCheck(schema, name)
        self._journal = journal
        self._value: Value | None = None
        self._is_known = False
        self._is_changed = False

    @override
    def exists(self) -> bool:
        return self.get() is not None

    @override
    def get(self) -> Value | None:
        if not self._is_known:
            value = stored(self._store.get)
            self._value, self._is_known = None if value is None else self._checked.formed(value), True
        return None if self._value is None else self._checked.given(self._value)

    @override
    def update(self, newValue: Value) -> None:
        self._set(self._checked(newValue))

    @override
    def clear(self) -> None:
        self._set(None)

    def flush(self) -> None:
        """Write what has changed, and forget the key."""
        if self._is_changed and self._value is None:
            self._store.clear()
        elif self._is_changed and self._value is not None:
            self._store.update(self._value)
        self._forget()

    def _forget(self) -> None:
        self._restore(None, is_known=False, is_changed=False)

    def _set(self, value: Value | None) -> None:
        self._journal.add(partial(self._restore, self._value, is_known=self._is_known, is_changed=self._is_changed))
        self._restore(value, is_known=True, is_changed=True)

    def _restore(self, value: Value | None, *, is_known: bool, is_changed: bool) -> None:
        self._value = value
        self._is_known = is_known
        self._is_changed = is_changed


class BufferedList(ListState):
    """A variable with a list of values."""

    def __init__(self, store: ListState, name: str, schema: StructType, journal: Journal) -> None:
        self._store = store
        self._checked = ValueCheck(schema, name)
        self._journal = journal
        self._base: list[Value] | None = None
        """The values before those added since, once they are known."""
        self._added: list[Value] = []
        self._is_replaced = False

    @override
    def exists(self) -> bool:
        return bool(self._added or self._earlier())

    @override
    def get(self) -> Iterator[Value]:
        return map(self._checked.given, [*self._earlier(), *self._added])

    @override
    def put(self, newState: list[Value]) -> None:
        values = [self._checked(value) for value in newState]
        self._journal.add(partial(self._restore, self._base, self._added, is_replaced=self._is_replaced))
        self._restore([], values, is_replaced=True)

    @override
    def appendValue(self, newState: Value) -> None:
        self.appendList([newState])

    @override
    def appendList(self, newState: list[Value]) -> None:
        values, added = [self._checked(value) for value in newState], self._added
        self._journal.add(partial(added.__delitem__, slice(len(added), None)))
        added.extend(values)

    @override
    def clear(self) -> None:
        self.put([])

    def flush(self) -> None:
        """Write what has changed, and forget the key."""
        if self._is_replaced and self._added:
            self._store.put(self._added)
        elif self._is_replaced:
            self._store.clear()
        elif self._added:
            self._store.appendList(self._added)
        self._forget()

    def _earlier(self) -> list[Value]:
        """Return the values before those added since, from the store."""
        if self._base is None:
            self._base = [self._checked.formed(value) for value in stored(lambda: list(self._store.get()))]
        return self._base

    def _forget(self) -> None:
        self._restore(None, [], is_replaced=False)

    def _restore(self, base: list[Value] | None, added: list[Value], *, is_replaced: bool) -> None:
        self._base = base
        self._added = added
        self._is_replaced = is_replaced


class BufferedMap(MapState):
    """A variable with a map of values."""

    def __init__(self, store: MapState, name: str, keys: StructType, values: StructType, journal: Journal) -> None:
        self._store = store
        self._checked_key = ValueCheck(keys, name)
        self._checked = ValueCheck(values, name)
        self._journal = journal
        self._written: dict[Value, Value | None] = {}
        """The values written since, None for one removed."""
        self._read: dict[Value, Value | None] = {}
        self._is_cleared = False

    @override
    def exists(self) -> bool:
        return bool(self._all()) if self._written or self._is_cleared else stored(self._store.exists)

    @override
    def getValue(self, key: Value) -> Value | None:
        value = self._value(self._checked_key(key))
        return None if value is None else self._checked.given(value)

    @override
    def containsKey(self, key: Value) -> bool:
        return self._value(self._checked_key(key)) is not None

    @override
    def updateValue(self, key: Value, value: Value) -> None:
        self._write(self._checked_key(key), self._checked(value))

    @override
    def removeKey(self, key: Value) -> None:
        self._write(self._checked_key(key), None)

    @override
    def iterator(self) -> Iterator[tuple[Value, Value]]:
        return ((key, self._checked.given(value)) for key, value in self._all().items())

    @override
    def keys(self) -> Iterator[Value]:
        return iter(self._all())

    @override
    def values(self) -> Iterator[Value]:
        return map(self._checked.given, self._all().values())

    @override
    def clear(self) -> None:
        self._journal.add(partial(self._restore, self._written, self._read, is_cleared=self._is_cleared))
        self._restore({}, {}, is_cleared=True)

    def flush(self) -> None:
        """Write what has changed, and forget the key."""
        if self._is_cleared:
            self._store.clear()
        for key, value in self._written.items():
            if value is not None:
                self._store.updateValue(key, value)
            elif not self._is_cleared:
                self._store.removeKey(key)
        self._forget()

    def _value(self, key: Value) -> Value | None:
        if key in self._written:
            return self._written[key]
        if key not in self._read:
            value = None if self._is_cleared else stored(lambda: self._store.getValue(key))
            self._read[key] = None if value is None else self._checked.formed(value)
        return self._read[key]

    def _all(self) -> dict[Value, Value]:
        """The present values in the order of their keys, wherever they are stored."""
        in_store = () if self._is_cleared else stored(lambda: list(self._store.iterator()))
        values = {self._checked_key.formed(key): self._checked.formed(value) for key, value in in_store} | self._written
        return {key: value for key in sorted(values, key=rank) if (value := values[key]) is not None}

    def _write(self, key: Value, value: Value | None) -> None:
        is_first = key not in self._written
        self._journal.add(partial(self._undo_write, self._written, key, self._written.get(key), is_first=is_first))
        self._written[key] = value

    @staticmethod
    def _undo_write(written: dict[Value, Value | None], key: Value, value: Value | None, *, is_first: bool) -> None:
        if is_first:
            del written[key]
        else:
            written[key] = value

    def _forget(self) -> None:
        self._restore({}, {}, is_cleared=False)

    def _restore(
        self, written: dict[Value, Value | None], read: dict[Value, Value | None], *, is_cleared: bool
    ) -> None:
        self._written = written
        self._read = read
        self._is_cleared = is_cleared
