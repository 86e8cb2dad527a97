"""Each defect that the model could have changes what a script observes: the scripts see what they are to prove."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, find, settings

from tests.simulation.kafka import cursor, placement
from tests.simulation.kafka.broker import Broker
from tests.simulation.kafka.groups import Groups
from tests.simulation.kafka.log import Entry, PartitionLog
from tests.simulation.kafka.scripts import scripts
from tests.simulation.kafka.test_fidelity import modelled
from tests.simulation.kafka.topics import Topic, Topics
from tests.simulation.kafka.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.simulation.kafka.operations import Operation

    Patch = Callable[[pytest.MonkeyPatch], None]

pytestmark = pytest.mark.full
MUTATIONS: dict[str, Patch] = {}
FIRST_FOUND = settings(
    max_examples=3_000,
    phases=[Phase.generate],
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    database=None,
)


def mutation(patch: Patch) -> Patch:
    """Register a defect by the name of its function."""
    MUTATIONS[patch.__name__] = patch
    return patch


@mutation
def the_end_is_too_small(patch: pytest.MonkeyPatch) -> None:
    sound: Any = PartitionLog.stable_end
    patch.setattr(PartitionLog, "stable_end", property(lambda log: max(log.start, sound.fget(log) - 1)))


@mutation
def readers_see_open_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionLog, "stable_end", property(lambda log: log.end))


@mutation
def a_marker_takes_no_offset(patch: pytest.MonkeyPatch) -> None:
    sound = PartitionLog.end_transaction

    def ended(log: PartitionLog, *arguments: Any, **flags: Any) -> None:
        sound(log, *arguments, **flags)
        log.end -= 1
        log._entries.pop()  # noqa: SLF001

    patch.setattr(PartitionLog, "end_transaction", ended)


@mutation
def readers_see_aborted_records(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionLog, "_is_visible", lambda _, entry: not entry.is_marker)


@mutation
def a_time_is_looked_up_from_the_end(patch: pytest.MonkeyPatch) -> None:
    def last(log: PartitionLog, timestamp_ms: int) -> Entry | None:
        return next((entry for entry in reversed(log._entries) if entry.timestamp_ms >= timestamp_ms), None)  # noqa: SLF001

    patch.setattr(PartitionLog, "first_since", last)


@mutation
def a_lookup_skips_markers(patch: pytest.MonkeyPatch) -> None:
    def first(log: PartitionLog, timestamp_ms: int) -> Entry | None:
        found = (entry for entry in log._entries if entry.timestamp_ms >= timestamp_ms and not entry.is_marker)  # noqa: SLF001
        return next(found, None)

    patch.setattr(PartitionLog, "first_since", first)


@mutation
def the_newest_record_is_the_last_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionLog, "newest", lambda log: log._entries[-1] if log._entries else None)  # noqa: SLF001


@mutation
def tombstones_are_dropped(patch: pytest.MonkeyPatch) -> None:
    sound = PartitionLog.append

    def appended(log: PartitionLog, timestamp_ms: int, key: bytes, value: bytes | None, *rest: Any) -> int:
        return log.end if value is None else sound(log, timestamp_ms, key, value, *rest)

    patch.setattr(PartitionLog, "append", appended)


@mutation
def an_empty_value_is_a_tombstone(patch: pytest.MonkeyPatch) -> None:
    append_with(patch, lambda entry: entry._replace(value=entry.value or None))


@mutation
def headers_are_lost(patch: pytest.MonkeyPatch) -> None:
    append_with(patch, lambda entry: entry._replace(headers=()))


@mutation
def the_last_header_of_a_name_wins(patch: pytest.MonkeyPatch) -> None:
    append_with(patch, lambda entry: entry._replace(headers=tuple(dict(entry.headers).items())))


@mutation
def the_broker_does_not_stamp(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Topic, "is_stamped_by_broker", property(lambda _: False))


@mutation
def keys_have_another_partition(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement, "partition_of", lambda key, partitions: zlib.crc32(key) % partitions)


@mutation
def one_record_too_many_is_deleted(patch: pytest.MonkeyPatch) -> None:
    sound = PartitionLog.delete_before
    patch.setattr(PartitionLog, "delete_before", lambda log, offset: sound(log, min(offset + 1, log.end)))


@mutation
def a_position_that_is_gone_is_the_end(patch: pytest.MonkeyPatch) -> None:
    def latest(log: PartitionLog, position: int) -> int:
        return position if log.start <= position <= log.end else log.end

    patch.setattr(cursor, "fetch_position", latest)


@mutation
def a_recreated_topic_has_its_records(patch: pytest.MonkeyPatch) -> None:
    kept: dict[str, Any] = {}
    delete, create = Broker.delete_topic, Topics.create

    def deleted(broker: Broker, name: str) -> None:
        kept[name] = broker.topics.by_name[name].logs
        delete(broker, name)

    def created(topics: Topics, new: Any) -> None:
        create(topics, new)
        topics.by_name[new.name].logs = kept.pop(new.name, topics.by_name[new.name].logs)

    patch.setattr(Broker, "delete_topic", deleted)
    patch.setattr(Topics, "create", created)


@mutation
def a_recreated_topic_has_its_committed_offsets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Groups, "forget", lambda *_: None)


@mutation
def a_recreated_topic_has_its_id(patch: pytest.MonkeyPatch) -> None:
    sound = Topic.__init__

    def created(topic: Topic, _: str, *arguments: Any) -> None:
        sound(topic, "the same", *arguments)

    patch.setattr(Topic, "__init__", created)


@mutation
def an_earlier_producer_is_not_fenced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "_require_epoch", lambda *_: None)


@mutation
def an_open_transaction_is_left_open(patch: pytest.MonkeyPatch) -> None:
    def registered(transactions: Transactions, transactional_id: str, _: int) -> int:
        epochs = transactions._epochs  # noqa: SLF001
        epochs[transactional_id] = epochs.get(transactional_id, -1) + 1
        return epochs[transactional_id]

    patch.setattr(Transactions, "register", registered)


@mutation
def a_transaction_commits_no_offsets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "add_offsets", lambda *_: None)


@mutation
def a_topic_may_shrink(patch: pytest.MonkeyPatch) -> None:
    def grown(topics: Topics, name: str, partitions: int) -> None:
        logs = topics.topic(name).logs
        logs[partitions:] = [PartitionLog() for _ in range(partitions - len(logs))]

    patch.setattr(Topics, "grow", grown)


def append_with(patch: pytest.MonkeyPatch, change: Callable[[Entry], Entry]) -> None:
    """Change the entries that a log appends."""
    sound = PartitionLog._append  # noqa: SLF001
    patch.setattr(PartitionLog, "_append", lambda log, entry: sound(log, change(entry)))


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_script_observes_a_defect_of_the_model(name: str) -> None:
    def is_different(script: Sequence[Operation]) -> bool:
        sound = modelled(script, "m.")
        with pytest.MonkeyPatch.context() as patch:
            MUTATIONS[name](patch)
            return modelled(script, "m.") != sound

    assert find(scripts(), is_different, settings=FIRST_FOUND)
