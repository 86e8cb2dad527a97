"""The judge of an upgrade accepts a loop that keeps all promises, and finds each broken one."""

from __future__ import annotations

import json
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

from tests.compatibility.upgrade_apis import Apis, Call, Outage
from tests.compatibility.upgrade_commits import TOPICS, Commits
from tests.compatibility.upgrade_judge import Published, judge
from tests.compatibility.upgraded import HIGH, LOW, PARTITIONS, Load, Session, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVENTS = 700
Record = tuple[str, dict[str, Any]]


class Rows(dict[str, Any]):
    """The part of a client of Redis that the judge uses."""

    def hget(self, key: str, _field: str) -> str | None:
        """Return the value of a row as JSON."""
        return json.dumps(self[key]) if key in self else None

    def scan_iter(self, pattern: str, count: int) -> Iterator[str]:  # noqa: ARG002
        """Return the keys that match."""
        return (key for key in self if fnmatchcase(key, pattern))


class Loop:
    """What a loop without faults gives for a load."""

    def __init__(self) -> None:
        self.load = Load(1)
        self.records: list[Record] = []
        self.store = Rows({"limits:everywhere": {"high": HIGH, "low": LOW}})
        Apis.calls[:] = Apis.deliveries[:] = []
        for _ in range(EVENTS):
            self.load.event()
        for window, session in self.load.sessions.items():
            self._publish(window, session)

    def _publish(self, window: Window, session: Session) -> None:
        own = {"device_id": window[0], "first_seen": window[1]}
        state = session.state()
        snapshot = own | {
            "version": session.pings + 1,
            "enrichments": {"owner": {"result": state.pop("owner")}},
            "state": state,
        }
        self.records += [("snapshots", snapshot), ("feedback", own)]
        self.store[f"couriers:{window[0]}"] = snapshot
        self.store[f"plates:{session.plate}"] = {"value": {"courier": window[0]}}
        Apis.calls.append(Call(session.plate, 0.0, 1.0))
        for number in range(session.opened):
            for status in ("open", "closed")[: 1 + (number < session.closed)]:
                alert = {"id": f"{window}/{number}", "status": status}
                record = own | {"alerts": [alert]}
                self.records.append(("speeding", record))
                self.store[f"speeding:{window[0]}"] = record
                Apis.deliveries.append(Call(f"{alert['id']} {status}", 0.0, 1.0))

    def broken(self, *kills: float) -> set[str]:
        """Return the promises that the judge calls broken."""
        return self.broken_after([(kill, kill) for kill in kills], [])

    def broken_after(
        self, outages: list[Outage], handovers: list[Outage], unanswered_at: float | None = None
    ) -> set[str]:
        """Return the promises that the judge calls broken. At that time a snapshot of the first call has no answer."""
        published = Published()
        for topic, record in self.records:
            published.take(topic, json.dumps(record).encode(), 2.0)
        if unanswered_at is not None:
            window = next(iter(self.load.sessions))
            snapshot = {"device_id": window[0], "first_seen": window[1], "version": 1, "enrichments": {}}
            published.take("snapshots", json.dumps(snapshot).encode(), unanswered_at)
        rows = judge(self.load, published, self.store, outages, handovers)  # type: ignore[arg-type]
        return {name for name, *_, is_right in rows if not is_right}


@pytest.fixture
def loop() -> Iterator[Loop]:
    """Give a loop without faults."""
    yield Loop()
    Apis.calls.clear()
    Apis.deliveries.clear()


def test_a_loop_without_faults_keeps_all_promises(loop: Loop) -> None:
    assert loop.broken() == set()
    assert sum(session.opened for session in loop.load.sessions.values()) > EVENTS / 12


def lose_snapshot(loop: Loop) -> None:
    loop.records.remove(next(record for record in loop.records if record[0] == "snapshots"))


def merge_an_event_twice(loop: Loop) -> None:
    snapshot = next(record for topic, record in loop.records if topic == "snapshots")
    snapshot["version"] += 1


def lose_alert(loop: Loop) -> None:
    loop.records.remove(next(record for record in loop.records if record[0] == "speeding"))


def open_alert_twice(loop: Loop) -> None:
    record = next(record for topic, record in loop.records if topic == "speeding")
    loop.records.insert(0, ("speeding", record | {"alerts": [{"id": "another", "status": "open"}]}))


def call_again(loop: Loop) -> None:  # noqa: ARG001
    Apis.calls.append(replace(Apis.calls[0]))


def deliver_again(loop: Loop) -> None:  # noqa: ARG001
    Apis.deliveries.append(replace(Apis.deliveries[0]))


def answer_again(loop: Loop) -> None:
    loop.records.append(next(record for record in loop.records if record[0] == "feedback"))


def lose_call(loop: Loop) -> None:  # noqa: ARG001
    Apis.calls.pop()


def lose_delivery(loop: Loop) -> None:  # noqa: ARG001
    Apis.deliveries.pop()


def lose_row(loop: Loop) -> None:
    loop.store.popitem()


def keep_an_old_row(loop: Loop) -> None:
    loop.store["couriers:courier-0"] = loop.store["couriers:courier-0"] | {"version": 1}


def reject_event(loop: Loop) -> None:
    loop.records.append(("dead_letters", {}))


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (lose_snapshot, "final states"),
        (merge_an_event_twice, "merged records"),
        (lose_alert, "alerts opened or closed"),
        (open_alert_twice, "further alerts"),
        (call_again, "calls of the registry again, at most"),
        (deliver_again, "alerts delivered again, at most"),
        (answer_again, "answers again, at most"),
        (lose_call, "calls of the registry"),
        (lose_delivery, "alerts delivered"),
        (lose_row, "all rows"),
        (keep_an_old_row, "rows of couriers"),
        (reject_event, "dead letters"),
    ],
)
def test_each_fault_is_found(loop: Loop, fault: Callable[[Loop], None], found: str) -> None:
    fault(loop)
    assert found in loop.broken()


def test_a_call_in_flight_at_a_kill_may_be_repeated(loop: Loop) -> None:
    answer_again(loop)
    Apis.calls.append(replace(Apis.calls[0]))
    assert loop.broken(0.5) == {"merged records"}, "a second answer is merged too"
    assert "calls of the registry again, at most" in loop.broken(9.0), "the kill was later"


@pytest.mark.parametrize("fault", [call_again, deliver_again, answer_again])
def test_a_call_that_ended_before_the_last_commit_is_not_repeated(loop: Loop, fault: Callable[[Loop], None]) -> None:
    fault(loop)
    assert loop.broken(1.01) - {"merged records"}, "the call ended at 1.0"
    assert not loop.broken(1.0) - {"merged records"}


@pytest.mark.parametrize("fault", [call_again, answer_again])
def test_a_new_owner_may_repeat_the_call_of_a_snapshot_that_lacks_the_answer(
    loop: Loop, fault: Callable[[Loop], None]
) -> None:
    fault(loop)
    handover = 3.0, 5.0
    assert loop.broken_after([], [handover], 4.0) <= {"merged records"}
    assert loop.broken_after([], [handover], 6.0) <= {"merged records"}, "the job may be late"
    assert loop.broken_after([], [handover], 2.9) - {"merged records"}, "that snapshot was committed"
    assert loop.broken_after([], [handover]) - {"merged records"}, "all snapshots had the answer"
    assert loop.broken_after([], [], 4.0) - {"merged records"}, "the owner did not change"
    assert loop.broken_after([], [(-3.0, -1.0)], 4.0) - {"merged records"}, "the call began later"


def test_an_outage_ends_when_all_partitions_are_committed_again() -> None:
    now = 1.0
    commits = Commits(lambda: now)
    places = [(group, number) for group in TOPICS for number in range(PARTITIONS)]
    assert commits.oldest() == 0.0
    commits.record(dict.fromkeys(places, 5))
    now = 2.0
    commits.record(dict.fromkeys(places, 5))
    assert commits.oldest() == 1.0, "nothing was committed meanwhile"
    commits.record(dict.fromkeys(places[1:], 6))
    assert not commits.have_all_changed(1.5)
    commits.record({places[0]: 6})
    assert commits.have_all_changed(1.5)
