"""Follows the topics of all named states in one thread: reads, decodes, writes, and tells the event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError

from contracts.errors import DeclarationError
from services.query.ingest.assignment import Followed
from services.query.ingest.batch_reader import FLOW, Reader
from services.query.ingest.change_queue import Outbox
from services.query.ingest.consumer_thread import Polling
from services.query.ingest.decode import Decoder, Garbage, Read
from services.query.ingest.end_offsets import Ends
from services.query.ingest.errors import FollowingFailed
from services.query.ingest.freshness import Freshness
from services.query.ingest.ingestion import Part
from services.query.ingest.misplaced import Misplaced
from services.query.ingest.tombstones import NEVER_LOST
from services.query.store.entry import made

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from confluent_kafka import Consumer, Message

    from contracts.model.named_state import NamedState
    from services.query.ingest.ingestion import Listener, Progress
    from services.query.ingest.tombstones import Removals
    from services.query.store.store import Store, Update

log = logging.getLogger(__name__)

GROUP = "stateloop-query-follower"
"""The client wants a name; it joins no group and commits nothing."""


class Source(NamedTuple):
    """A state that is followed, and where to."""

    state: NamedState
    store: Store
    decoder: Decoder


class Gathered:
    """What was read of one state, and is written next."""

    __slots__ = ("offsets", "updates")

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.offsets: defaultdict[int, list[int]] = defaultdict(list)


class Tally:
    """What was read since the start, by state. The thread counts, anybody may look."""

    def __init__(self, states: Iterable[str]) -> None:
        self.records = dict.fromkeys(states, 0)
        self.garbage = dict.fromkeys(self.records, 0)
        self.rounds = 0


class Follower:
    """See `Following`. Raises DeclarationError for two states of one topic."""

    def __init__(
        self,
        client: Mapping[str, str],
        states: Mapping[str, NamedState],
        stores: Mapping[str, Store],
        listener: Listener,
        removals: Removals = NEVER_LOST,
    ) -> None:
        _check_topics(states)
        self._sources = {one.topic: Source(one, stores[name], Decoder(one)) for name, one in states.items()}
        self._topics = {name: one.topic for name, one in states.items()}
        self._listener = listener
        self._polling = Polling(client, {**FLOW, "group.id": GROUP}, "follower")
        self._ends = Ends(client, GROUP, self._topics)
        self._asking = ThreadPoolExecutor(1, "ends")
        self._reader = Reader(self._polling.consumer, time.monotonic)
        self._removals = removals
        self._followed = Followed(self._reader, self._topics, stores, Freshness(stores, removals))
        self._orders: deque[Callable[[], None]] = deque()
        self._torn = False
        self._rebuilding = dict(stores)
        self.tally = Tally(states)
        self.misplaced = Misplaced(states, stores)

    def follow(self, part: Part) -> None:
        """See `Following`."""
        self._orders.append(partial(self._followed.begin, part))

    def leave(self, part: Part) -> None:
        """See `Following`."""
        self._orders.append(partial(self._followed.end, part))

    def progress(self, part: Part) -> Progress | None:
        """See `Following`."""
        return self._followed.progress.get(part)

    async def ends(self, parts: Collection[Part]) -> dict[Part, int]:
        """See `Following`."""
        return await asyncio.get_running_loop().run_in_executor(self._asking, self._ends.ask, parts)

    async def run(self) -> None:
        """See `Following`. Raises FollowingFailed, StoreError."""
        self._outbox = Outbox(asyncio.get_running_loop(), self._listener, lambda: self._polling.stopping)
        looking = asyncio.create_task(self._look())
        try:
            await self._polling.run(self._work)
        finally:
            looking.cancel()
            self._asking.shutdown(wait=False, cancel_futures=True)

    async def _look(self) -> None:
        """Note again and again that all of the topics is here, as long as it is."""
        while self._removals.kept:
            at = self._removals.now()
            ends = await self.ends(tuple(self._followed.progress))
            self._orders.append(partial(self._followed.ask, ends, at))
            await asyncio.sleep(self._removals.every)

    def _work(self, _: Consumer) -> None:
        """One round, in the thread. The client may fail anywhere in it, and is called again."""
        self.tally.rounds += 1
        if self._torn:
            log.warning("reads again what was not written")
            self._followed.mend()
        self._torn = True
        self._follow()
        self._take(self._reader.read(wait=not self._followed.busy))
        self._sweep()
        self._settle()
        self._torn = False

    def _follow(self) -> None:
        """Do what was ordered."""
        while self._orders:
            self._orders.popleft()()
        self._followed.forget()

    def _take(self, pieces: Iterable[list[Message]]) -> None:
        """Decode each piece as it comes, while the processor has it at hand, and write all at once."""
        gathered: defaultdict[str, Gathered] = defaultdict(Gathered)
        troubles = []
        for messages in pieces:
            for message in messages:
                if message.error() is None:
                    topic = message.topic() or ""
                    self._gather(self._sources[topic], _read(message), gathered[topic])
                else:
                    troubles.append(message)
        for topic, one in gathered.items():
            self._write(self._sources[topic], one)
        for message in troubles:
            self._face(message)

    def _gather(self, source: Source, read: Read, gathered: Gathered) -> None:
        gathered.offsets[read.partition].append(read.offset)
        try:
            update = source.decoder.decode(read)
        except Garbage as error:
            self.tally.garbage[source.state.name] += 1
            place = {"topic": source.state.topic, "partition": read.partition, "offset": read.offset}
            log.warning("a record is passed over", extra={"facts": {**place, "reason": error.reason}})
            return
        if update is not None:
            gathered.updates.append(update)

    def _sweep(self) -> None:
        """Drop what nobody remembers by the clock: no record need come for that."""
        for source in self._sources.values():
            source.store.sweep()

    def _settle(self) -> None:
        """Of states that are read for the first time since the start: say that they are."""
        for name in [name for name in self._rebuilding if self._followed.kept_up(name)]:
            self._outbox.ask(self._rebuilding.pop(name).settle)

    def _write(self, source: Source, gathered: Gathered) -> None:
        """Write a batch, and tell of it."""
        name, updates = source.state.name, gathered.updates
        lost = {one for one, offsets in gathered.offsets.items() if self._lost(Part(name, one), offsets)}
        if lost:
            updates = [one for one in updates if one.partition not in lost]
        positions = {one: offsets[-1] + 1 for one, offsets in gathered.offsets.items() if one not in lost}
        if not positions:
            return
        self.misplaced.look(name, updates)
        self._outbox.add(source.store.apply(updates, positions))
        for partition, position in positions.items():
            self._followed.reached(Part(name, partition), position)
        self.tally.records[name] += sum(len(gathered.offsets[one]) for one in positions)

    def _lost(self, part: Part, offsets: Iterable[int]) -> bool:
        """Whether it has to be read from its beginning; then that is done."""
        lost = self._followed.lost(part, offsets)
        if lost:
            self._restart(part, "it was away for longer than its topic keeps removals")
        return lost

    def _restart(self, part: Part, why: str) -> None:
        self._followed.restart(part, why, lambda: self._outbox.ask(lambda: self._listener.restarted(part)))

    def _face(self, message: Message) -> None:
        """What the client says in place of a record."""
        error, part = message.error(), self._part(message)
        if error is None:
            return
        if error.fatal():
            raise FollowingFailed(error.name(), error.str())
        if part is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 (the client's public name)
            if not self._lost(part, [message.offset() or 0]):  # the last records may be among those that are gone
                self._followed.reached(part, message.offset() or 0)
        elif part is not None and part in self._followed and error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            self._restart(part, "its topic no longer has what comes next")
        else:
            log.warning("kafka", extra={"facts": {"code": error.name(), "detail": error.str()}})

    def _part(self, message: Message) -> Part | None:
        source, partition = self._sources.get(message.topic() or ""), message.partition()
        return None if source is None or partition is None else Part(source.state.name, partition)


def _check_topics(states: Mapping[str, NamedState]) -> None:
    names: dict[str, str] = {}
    for name, state in states.items():
        if (other := names.setdefault(state.topic, name)) != name:
            raise DeclarationError(f"state {name!r}", f"has the topic of {other!r}", "Declare one state of a topic")


def _read(message: Message) -> Read:
    _, timestamp = message.timestamp()
    return made(Read, (message.key(), message.value(), message.partition() or 0, message.offset() or 0, timestamp))
