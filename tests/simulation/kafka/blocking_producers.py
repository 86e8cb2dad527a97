"""Producers of the model broker for a thread: with acknowledgements, or in transactions."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING

from services.runtime.kafka.interfaces import TransactionalProducer
from tests.simulation.kafka.errors import RefusedError, delivery_failed, requested
from tests.simulation.kafka.network import POLL_S
from tests.simulation.kafka.placement import Placement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from services.runtime.errors import DeliveryFailedError
    from services.runtime.kafka.values import GroupOffset, Output, Partition
    from tests.simulation.kafka.broker import Broker
    from tests.simulation.kafka.network import Network

DROP_AFTER = timedelta(minutes=5)
FENCED, TIMED_OUT = "_FENCED", "_MSG_TIMED_OUT"


class ModelBlockingProducer:
    """Writes records at once, or when the broker is back. Implements BlockingProducer."""

    def __init__(self, broker: Broker, network: Network, drop_after: timedelta = DROP_AFTER) -> None:
        self._broker = broker
        self._network = network
        self._drop_after_s = drop_after.total_seconds()
        self._placement = Placement(broker)
        self._waiting: list[tuple[float, Output]] = []
        """The records that are not written, each with the time at which it is dropped."""
        self._offsets: list[int] = []
        self._error: DeliveryFailedError | None = None

    def send(self, outputs: Iterable[Output]) -> Sequence[int]:
        """See `BlockingProducer.send`."""
        self.flush()
        self._offsets = []
        for output in outputs:
            self._enqueue(output)
        self.flush()
        return self._offsets

    def enqueue(self, output: Output) -> None:
        """See `BlockingProducer.enqueue`."""
        self._require_deliveries()
        self._enqueue(output)

    def flush(self, within_s: float | None = None) -> int:
        """See `BlockingProducer.flush`."""
        time = self._network.time
        until = float("inf") if within_s is None else time.time() + within_s
        self._write()
        while self._waiting and time.time() < until:
            time.sleep(POLL_S)
            self._write()
        self._require_deliveries()
        return len(self._waiting)

    def _enqueue(self, output: Output) -> None:
        try:
            self._placement.require_size(output)
        except RefusedError as error:
            raise delivery_failed(output.topic, error) from error
        self._waiting.append((self._network.time.time() + self._drop_after_s, output))
        self._write()

    def _write(self) -> None:
        network = self._network
        while self._waiting and (network.is_up or network.time.time() >= self._waiting[0][0]):
            _, output = self._waiting.pop(0)
            try:
                self._offsets.append(self._acknowledged(output))
            except RefusedError as error:
                self._error = self._error or delivery_failed(output.topic, error)

    def _acknowledged(self, output: Output) -> int:
        network = self._network
        if not network.is_up:
            raise RefusedError(TIMED_OUT)
        offset = self._broker.append(self._placement.partition(output), output)
        if network.loses_acknowledgement():
            network.time.sleep(self._drop_after_s)
            raise RefusedError(TIMED_OUT)
        return offset

    def _require_deliveries(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


class _State(Enum):
    READY = auto()
    BEGUN = auto()
    FAILED = auto()
    """A record was not written: the transaction can only be aborted."""
    FENCED = auto()


class ModelTransactionalProducer(TransactionalProducer):
    """Writes records at once; their transaction decides whether readers see them."""

    def __init__(self, broker: Broker, network: Network, transactional_id: str, group: str | None = None) -> None:
        self._broker = broker
        self._network = network
        self._id = transactional_id
        self._group = group
        self._placement = Placement(broker)
        with requested("begin a transaction"):
            network.require()
            self._epoch = broker.transactions.register(transactional_id, broker.now_ms)
        self._state = _State.READY
        self._failure = ""
        self._is_registered = False
        """Whether the broker knows of the present transaction: the client requests nothing for an empty one."""

    def begin(self) -> None:
        """See `TransactionalProducer.begin`."""
        with self._requested("begin a transaction", _State.READY):
            self._state, self._is_registered = _State.BEGUN, False

    def enqueue(self, output: Output) -> None:
        """See `TransactionalProducer.enqueue`."""
        try:
            self._require_state(_State.BEGUN)
            self._placement.require_size(output)
        except RefusedError as error:
            raise delivery_failed(output.topic, error) from error
        try:
            self._network.require()
            self._is_registered = True
            partition = self._placement.partition(output)
            transaction = self._broker.transactions.add_partition(self._id, self._epoch, partition)
            self._broker.append(partition, output, transaction)
        except RefusedError as error:
            self._fail(error.code)

    def commit(self, group_offsets: Mapping[Partition, GroupOffset] | None = None) -> None:
        """See `TransactionalProducer.commit`."""
        with self._requested("commit a transaction", _State.BEGUN):
            if group_offsets and self._group is not None:
                self._is_registered = True
                self._broker.transactions.add_offsets(self._id, self._epoch, self._group, group_offsets)
            self._end(is_committed=True)

    def abort(self) -> None:
        """See `TransactionalProducer.abort`."""
        with self._requested("abort a transaction", _State.BEGUN, _State.FAILED):
            self._end(is_committed=False)

    def close(self) -> None:
        """There is nothing to close."""

    def _end(self, *, is_committed: bool) -> None:
        if self._is_registered:
            self._broker.transactions.end(self._id, self._epoch, self._broker.now_ms, is_committed=is_committed)
        self._state = _State.READY

    @contextmanager
    def _requested(self, request: str, *states: _State) -> Iterator[None]:
        with requested(request):
            self._require_state(*states)
            self._network.require()
            try:
                yield
            except RefusedError as error:
                self._fail(error.code)
                raise

    def _require_state(self, *states: _State) -> None:
        if self._state not in states:
            raise RefusedError(self._failure or "_STATE")

    def _fail(self, code: str) -> None:
        self._state = _State.FENCED if code == FENCED else _State.FAILED
        self._failure = code
