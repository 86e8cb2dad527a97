"""A processor that nothing calls."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues
from typing_extensions import override


class Unused(StatefulProcessor):
    """Declares no variable."""

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare nothing."""

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Any]:
        raise NotImplementedError
