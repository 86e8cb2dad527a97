"""The handle that a processor gets: variables and timers are buffered, and written at the end of a key's records."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import StructType
from typing_extensions import override

from contracts.errors import DeclarationError
from contracts.types.columns import LONG
from spark_app.query.processor.values import unsupported
from spark_app.query.processor.variables import BufferedList, BufferedMap, BufferedValue, Journal, stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.stateful_processor import ListState, MapState, StatefulProcessor, ValueState

V = TypeVar("V", BufferedValue, BufferedList, BufferedMap)
RESERVED = "stateloop"
"""The name of the pipeline's own variable in each window."""
Schemas = Mapping[str, tuple[StructType, ...]]
"""The schemas of the variables by name: one schema, or the schemas of key and value of a map."""


class BufferedHandle(StatefulProcessorHandle):
    """Gives a processor variables and timers that can be undone."""

    def __init__(self, store: StatefulProcessorHandle, schemas: Schemas) -> None:
        self._store = store
        self._schemas = schemas
        self._variables: list[BufferedValue | BufferedList | BufferedMap] = []
        self._timers: dict[int, bool] = {}
        """The timers that are registered, true, or deleted, false, since the last flush."""
        self.journal = Journal()
        self.own_timer: int | None = None
        """The pipeline's own timer of the window, which the processor does not see."""

    @override
    def getValueState(self, stateName: str, schema: StructType | str, ttlDurationMs: int | None = None) -> ValueState:
        (parsed,) = self._schemas[stateName]
        store = self._store.getValueState(stateName, parsed, ttlDurationMs)
        return self._added(BufferedValue(store, stateName, parsed, self.journal))

    @override
    def getListState(self, stateName: str, schema: StructType | str, ttlDurationMs: int | None = None) -> ListState:
        (parsed,) = self._schemas[stateName]
        store = self._store.getListState(stateName, parsed, ttlDurationMs)
        return self._added(BufferedList(store, stateName, parsed, self.journal))

    @override
    def getMapState(
        self,
        stateName: str,
        userKeySchema: StructType | str,
        valueSchema: StructType | str,
        ttlDurationMs: int | None = None,
    ) -> MapState:
        keys, values = self._schemas[stateName]
        store = self._store.getMapState(stateName, keys, values, ttlDurationMs)
        return self._added(BufferedMap(store, stateName, keys, values, self.journal))

    @override
    def registerTimer(self, expiryTimestampMs: int) -> None:
        self._set_timer(expiryTimestampMs, is_registered=True)

    @override
    def deleteTimer(self, expiryTimestampMs: int) -> None:
        self._set_timer(expiryTimestampMs, is_registered=False)

    @override
    def listTimers(self) -> Iterator[int]:
        of_store = dict.fromkeys(stored(lambda: list(self._store.listTimers())), True)
        timers = of_store | ({} if self.own_timer is None else {self.own_timer: False}) | self._timers
        return iter(sorted(time for time, is_registered in timers.items() if is_registered))

    @override
    def deleteIfExists(self, stateName: str) -> None:
        self._store.deleteIfExists(stateName)

    def claim_timer(self, time: int) -> None:
        """Register the pipeline's own timer, at this time or the first one after it that the processor does not use."""
        taken = set(self.listTimers())
        while time in taken:
            time += 1
        self._store.registerTimer(time)
        self.own_timer = time

    def flush(self) -> None:
        """Write the processor's changes of this key."""
        self.journal.keep()
        for variable in self._variables:
            variable.flush()
        if self.own_timer is not None and self._timers.get(self.own_timer):
            self.claim_timer(self.own_timer)
        for time, is_registered in self._timers.items():
            if is_registered:
                self._store.registerTimer(time)
            elif time != self.own_timer:
                self._store.deleteTimer(time)
        self._timers.clear()

    def clear(self) -> None:
        """Remove all variables and timers of this key."""
        for variable in self._variables:
            variable.clear()
        for time in self.listTimers():
            self.deleteTimer(time)
        self.flush()

    def _set_timer(self, time: int, *, is_registered: bool) -> None:
        time = _milliseconds(time)
        former = self._timers.get(time)
        self.journal.add(lambda: self._timers.pop(time) if former is None else self._timers.update({time: former}))
        self._timers[time] = is_registered

    def _added(self, variable: V) -> V:
        self._variables.append(variable)
        return variable


def _milliseconds(time: int) -> int:
    """Return the time of a timer. Raises TypeError and ValueError for one that Spark would refuse after the record."""
    whole = operator.index(time)
    if not -LONG <= whole < LONG:
        raise ValueError(f"a timer at {whole} ms, and a time has 64 bits")
    return whole


class _Recorder(StatefulProcessorHandle):
    """Records the schemas of the variables that a processor declares, and stores nothing."""

    def __init__(self, processor: str) -> None:
        self._processor = processor
        self.schemas: dict[str, tuple[StructType, ...]] = {}

    @override
    def getValueState(self, stateName: str, schema: StructType | str, ttlDurationMs: int | None = None) -> ValueState:
        return cast("ValueState", self._note(stateName, schema))

    @override
    def getListState(self, stateName: str, schema: StructType | str, ttlDurationMs: int | None = None) -> ListState:
        return cast("ListState", self._note(stateName, schema))

    @override
    def getMapState(
        self,
        stateName: str,
        userKeySchema: StructType | str,
        valueSchema: StructType | str,
        ttlDurationMs: int | None = None,
    ) -> MapState:
        return cast("MapState", self._note(stateName, userKeySchema, valueSchema))

    @override
    def deleteIfExists(self, stateName: str) -> None:
        """Nothing is stored."""

    def _note(self, name: str, *schemas: StructType | str) -> None:
        parsed = tuple(
            cast("StructType", StructType.fromDDL(schema)) if isinstance(schema, str) else schema for schema in schemas
        )
        where = f"{self._processor}.init, variable {name!r}"
        if name in self.schemas or name == RESERVED:
            raise DeclarationError(where, "has a name that is taken", "Choose another name")
        for schema in parsed:
            if (kind := unsupported(schema)) is not None:
                problem = f"has the type {kind.simpleString()}, which Spark does not give back as it was"
                raise DeclarationError(where, problem, "Write a time as BIGINT, its microseconds since 1970")
        self.schemas[name] = parsed


def declared_variables(processor: type[StatefulProcessor]) -> Schemas:
    """Return the schemas of the variables that a processor declares in `init`. Raises DeclarationError.

    It needs an active Spark session.
    """
    recorder = _Recorder(processor.__name__)
    made = processor()
    made.init(recorder)
    made.close()
    return recorder.schemas
