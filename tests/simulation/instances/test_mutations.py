"""Each guard of the query service is necessary: without it, a script fails. So the simulator can fail."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING

from contracts.wire.partition import partition
from services.client import watch
from services.query.cluster import Cluster, instance
from services.query.cluster.instance import Instance
from services.query.cluster.leases import CatchUpTarget, LeaseTable
from services.query.http import pages, windows_routes
from services.query.http.pages import PageItems
from services.query.ingest import decode
from services.query.ingest.freshness import FreshnessTracker
from services.query.ingest.kafka_ingestion import KafkaIngestion
from services.query.lookup.version_reference import VersionReference
from services.query.push import stream
from services.query.push.scanner import StoreScanner
from services.query.push.state_windows import StateWindows
from services.query.push.stream_items import ProgressMark
from services.query.push.subscription import Subscription
from services.query.push.upstream import Upstream
from services.query.store import Store, write_batch
from services.query.store.folder import StoreFolder
from services.query.store.index import TermIndex
from services.query.store.packing import order
from services.runtime.broker_clock import BrokerClock
from tests.simulation.instances import instance as simulated
from tests.simulation.instances.generate import KEYS
from tests.simulation.instances.generate import script as script_of
from tests.simulation.instances.job import APPLICATIONS
from tests.simulation.instances.script import Fault, Script, Written
from tests.simulation.kafka.admin import ModelAdmin
from tests.simulation.mutations import Mutations
from tests.simulation.verdict import instances_verdict as verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    import pytest

    from contracts.api.windows import WindowsParameters
    from contracts.wire.announcement import AnnouncedState
    from services.query.lookup.state_reader import WindowsRequest
    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.script import Step

mutation = Mutations(script_of, verdict)


def versions(first: float, last: float, every: float = 1.0) -> tuple[Written, ...]:
    """Return versions of one key at these times."""
    return tuple(Written(first + every * number, "k0") for number in range(round((last - first) / every)))


@mutation(Script(1, (*versions(5.0, 45.0), Fault(20.0, "freeze", "b", 20.0, 1.0))), is_found_by_seeds=True)
def a_lease_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaseTable, "is_valid", lambda *_: True)


@mutation(Script(1, (*versions(5.0, 45.0), Fault(20.0, "cut", "a", 20.0, 1.0), Fault(22.0, "crash", "b", 8.0))))
def a_new_owner_does_not_read_to_the_end(patch: pytest.MonkeyPatch) -> None:
    def check(target: CatchUpTarget, _: int) -> bool:
        target.reached = True
        return True

    patch.setattr(CatchUpTarget, "check", check)


@mutation(Script(1, (*versions(5.0, 45.0), Fault(20.0, "freeze", "b", 5.5), Fault(20.0, "cut", "b", 24.0, 1.0))))
def a_lease_is_not_released_to_another_instance(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaseTable, "_release_to", lambda *_: None)


@mutation(Script(1, (*versions(5.0, 10.0), Written(12.0, "k0", "again", 5))), is_found_by_seeds=True)
def versions_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    def before_all(data: bytes) -> EntryOrder:
        return order(data)[0], 0, 0

    patch.setattr(write_batch, "order", before_all)


@mutation(Script(1, (*versions(5.0, 10.0), Fault(20.0, "power", "a", 1.5), Fault(20.0, "power", "b", 1.5))))
def a_store_that_was_open_when_its_machine_went_down_is_used(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoreFolder, "_unusable", lambda *_: None)


CRASHES = (Fault(13.0, "crash", "a", 8.0), Fault(22.0, "crash", "b", 8.0))
"""Each instance loses its leases, and takes partitions over."""


@mutation(Script(1, (*versions(5.0, 10.0), Fault(20.0, "recreate", "topic"))))
def a_partition_without_the_next_record_is_not_read_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KafkaIngestion, "_restart", lambda *_: None)


OTHER = 1.0 - partition(b"k0", 2)
"""The partition of other keys."""


@mutation(Script(1, (*versions(5.0, 10.0), Fault(12.0, "leaderless", "topic", 60.0, OTHER), *CRASHES), partitions=2))
def a_partition_without_a_leader_delays_the_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ModelAdmin, "available_offsets", ModelAdmin.offsets)


CARS = APPLICATIONS["cars"]
DAY_AHEAD_S = (timedelta(days=1) + CARS.state.grace + CARS.skew).total_seconds()
"""By a clock that is as far ahead, all windows are expired, and other instances accept its watermark."""


@mutation(Script(1, (*versions(5.0, 10.0), Fault(12.0, "clock", "a", 5.0, DAY_AHEAD_S))))
def the_clock_of_an_instance_expires_windows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerClock, "now", lambda _: datetime.max.replace(tzinfo=UTC))


REMOVED: tuple[Step, ...] = (
    *(Written(5.0 + number / 10, f"k{number}") for number in range(20)),
    Written(14.0, "k0", "removed"),
    Written(32.0, "k1"),
    Fault(33.0, "compact", "topic"),
)
"""A tombstone that is compacted away."""


@mutation(Script(1, (*REMOVED, Fault(12.0, "crash", "a", 24.0), Fault(37.0, "crash", "b", 20.0))))
def a_missed_tombstone_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FreshnessTracker, "may_miss_tombstone", lambda *_: False)


@mutation(Script(1, (*REMOVED, Fault(12.0, "cut", "b", 24.0, 1.0)), batch=1))
def a_partition_that_is_read_again_is_answered_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Instance, "restarted", lambda *_: None)


EXPIRING = Script(1, (Written(5.0, "k0"), Fault(20.0, "compact", "topic")), "trips")
"""A window that expires a while before the end."""


@mutation(EXPIRING, is_found_by_seeds=True)
def windows_do_not_expire_by_the_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Instance, "_at_clock", lambda _, states: states)


@mutation(EXPIRING, is_found_by_seeds=True)
def watchers_do_not_learn_that_a_window_has_expired(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoreScanner, "add_expired", lambda *_: None)


@mutation(Script(1, tuple(Written(5.0 + 10.0 * number, "k0", "window") for number in range(5)), "shifts"))
def a_read_finds_an_older_window_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Store, "_ordered", lambda store: store._databases.slots)  # noqa: SLF001


@mutation(Script(1, versions(5.0, 10.0)), is_found_by_seeds=True)
def no_instance_has_a_replica(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(instance, "select_standbys", lambda *_: [])


@mutation(Script(1, (*versions(5.0, 33.0), Fault(30.0, "crash", "a", 8.0), Fault(30.0, "crash", "b", 8.0))))
def a_watch_that_connects_again_reads_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoreScanner, "add_key", lambda *_: None)


@mutation(Script(1, (*versions(5.0, 48.0), Fault(20.0, "apart", "a", 24.0))))
def a_watch_at_another_instance_is_not_requested_again(patch: pytest.MonkeyPatch) -> None:
    def disconnect(upstream: Upstream) -> None:
        upstream._pending.clear()  # noqa: SLF001

    patch.setattr(Upstream, "_disconnect", disconnect)


ROUNDS = tuple(Written(5.0 + number // 8 + number % 8 / 100, f"k{number % 8}") for number in range(80))
"""More keys change at once than may wait for a client."""


@mutation(Script(8, ROUNDS, room=0))
def a_client_that_was_reset_does_not_subscribe_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(watch, "RESET", "")


@mutation(Script(2, ROUNDS, room=0))
def a_mark_counts_what_a_reset_has_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        stream.Stream,
        "_is_complete",
        property(lambda one: not (one.names.waiting or one._scans or one._copied)),  # noqa: SLF001
    )


SLOW = Script(
    1,
    (
        *(Written(5.0 + 5.0 * (number % 2), key) for number, key in enumerate(KEYS)),
        Fault(0.0, "clock", "a", 45.0, -6.0),
    ),
    "trips",
    partitions=4,
)
"""Keys of both instances expire, while the clock of one of them is behind."""


@mutation(SLOW)
def an_instance_expires_windows_by_its_own_clock_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Instance, "_take_watermarks", lambda *_, **__: None)


@mutation(
    Script(
        1,
        (
            Fault(0.0, "clock", "a", 60.0, -30.0),
            Written(8.0, "k0"),
            Written(8.5, "k3"),
            Fault(26.9, "cut", "b", 10.0, 2.0),
        ),
        "trips",
        partitions=2,
    )
)
def an_owner_expires_a_window_before_the_others_can_know(patch: pytest.MonkeyPatch) -> None:
    # The announcement of its watermark did not arrive: its successor, whose clock was behind, served the window.
    at_clock = Instance._at_clock  # noqa: SLF001

    def advance(one: Instance, states: Mapping[str, AnnouncedState]) -> dict[str, AnnouncedState]:
        found = at_clock(one, states)
        for name, state in found.items():
            one._stores[name].advance_watermark(state.watermark)  # noqa: SLF001
        return found

    patch.setattr(Instance, "_at_clock", advance)


READ_LATE = Script(
    1,
    (Written(20.1, "k0"), Written(24.5, "k0"), Fault(22.0, "cut", "a", 20.0, 1.0), Fault(22.0, "cut", "b", 20.0, 1.0)),
)
"""No instance reads the last version of a window before the job's progress closes it."""


@mutation(replace(READ_LATE, application="shifts"))
def a_window_closes_before_its_records_are_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Instance, "has_read", lambda *_: True)


OF_BOTH = Script(1, tuple(Written(5.0 + number, KEYS[number % 4]) for number in range(12)), partitions=4)
"""Keys of both instances."""


@mutation(OF_BOTH, is_found_by_seeds=True)
def a_page_goes_on_after_the_last_key_of_any_instance(patch: pytest.MonkeyPatch) -> None:
    def merge(found: Sequence[PageItems], limit: int, **_: object) -> PageItems:
        items = sorted((item for page in found for item in page.items), key=itemgetter(0))
        return PageItems(items[:limit], max((page.after for page in found if page.after), default=None))

    patch.setattr(pages, "merge_pages", merge)


@mutation(OF_BOTH, is_found_by_seeds=True)
def an_index_has_only_the_first_values(patch: pytest.MonkeyPatch) -> None:
    move = TermIndex.move

    def move_first(*arguments: Any) -> None:
        *_, old, _ = arguments
        if old is None:
            move(*arguments)

    patch.setattr(TermIndex, "move", move_first)


SOME_WINDOWS = tuple(Written(5.0 + number, "k0", "window") for number in range(5))
DOWN = (Fault(4.0, "crash", "a", 12.0), Fault(4.0, "crash", "b", 12.0))


@mutation(Script(1, (*SOME_WINDOWS, *DOWN), "visits"))
def a_watch_of_all_windows_begins_with_the_newest_one(patch: pytest.MonkeyPatch) -> None:
    entries = StateWindows.entries
    patch.setattr(StateWindows, "entries", lambda windows, key, _: entries(windows, key, "newest"))


@mutation(Script(1, versions(5.0, 25.0)), is_found_by_seeds=True)
def a_read_of_a_version_returns_the_latest_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VersionReference, "resolve", lambda _, latest: latest.order)


@mutation(Script(1, SOME_WINDOWS, "visits"))
def a_page_of_windows_begins_with_the_last_one_again(patch: pytest.MonkeyPatch) -> None:
    request_of = windows_routes._windows_request  # noqa: SLF001

    def repeat(query: WindowsParameters) -> WindowsRequest:
        request = request_of(query)
        return request if query.cursor is None or request.start is None else request._replace(start=request.start - 1)

    patch.setattr(windows_routes, "_windows_request", repeat)


BUSY = tuple(Written(5.0 + number / 5, f"k{number % 3}") for number in range(60))


@mutation(Script(7, BUSY, room=0))
def a_mark_has_positions_while_names_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stream, "ProgressMark", lambda lag, _: ProgressMark(lag, complete=True))


GROWING = Script(
    3,
    (
        *OF_BOTH.steps,
        *(Written(17.0 + number / 10, key, "removed") for number, key in enumerate(KEYS[2:])),
        Fault(20.0, "grow", "topic", 18.0, 5.0),
        *(Written(45.0 + number, key) for number, key in enumerate(KEYS)),
    ),
    partitions=2,
)
"""Two of the keys are removed before the topics get more partitions."""


@mutation(GROWING, is_found_by_seeds=True)
def an_instance_does_not_notice_new_partitions(patch: pytest.MonkeyPatch) -> None:
    async def watch(*_: object) -> None:
        await asyncio.Event().wait()

    patch.setattr(simulated, "watch_partition_counts", watch)


@mutation(GROWING, is_found_by_seeds=True)
def copies_for_more_partitions_are_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decode, "is_copy_for_more", lambda *_: False)


MANY = tuple(Written(5.0 + number / 10, f"k{number % 20}") for number in range(100))
"""More records than an instance reads at once after its start."""


@mutation(
    Script(1, (*REMOVED, Fault(12.0, "cut", "a", 24.0, 1.0)), instances=1, replicas=1, batch=1, followed=True),
)
def a_watch_forgets_its_offset_when_a_partition_is_read_again(patch: pytest.MonkeyPatch) -> None:
    def forget(one: Subscription, partition: int, **_: object) -> None:
        one.since[partition] = None

    patch.setattr(Subscription, "read_again", forget)


@mutation(
    Script(
        1,
        (*MANY, Fault(25.0, "wipe", "a", 1.5), Written(30.0, "k0")),
        instances=1,
        replicas=1,
        batch=1,
        broker_s=0.06,
        followed=True,
    )
)
def a_watch_of_changes_begins_where_its_instance_has_read(patch: pytest.MonkeyPatch) -> None:
    async def at_the_beginning(_: Cluster, __: str, partitions: Collection[int]) -> dict[int, int]:
        return dict.fromkeys(partitions, 0)

    patch.setattr(Cluster, "end_offsets", at_the_beginning)


@mutation(
    Script(
        1,
        (*MANY[:20], Fault(25.0, "crash", "a", 8.0), Written(45.0, "k0")),
        partitions=4,
        instances=3,
        followed=True,
    )
)
def a_watch_of_changes_receives_the_present_value_of_a_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Subscription, "lacks", lambda *_: True)


test_a_script_fails_without_a_guard = mutation.script_test()
test_fresh_seeds_find_a_missing_guard = mutation.seed_test()
