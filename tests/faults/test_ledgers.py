"""Each ledger can fail: one wrong record, call or read is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.e2e.launched import CHECKOUT
from tests.faults.application import app
from tests.faults.catalogue import FAULTS
from tests.faults.ledgers import Published, Verdict, judge
from tests.faults.load import Load
from tests.faults.reader import MonotonicReader
from tests.faults.report import Results

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.load import Place

EVENTS = 50
REFUSED: Place = (app.topics.events, 0, 7)


class Run:
    """The ledgers of a run that kept all promises."""

    def __init__(self) -> None:
        self.load, self.published = Load("run", 1), Published()
        for _ in range(EVENTS):
            self.load.event()
        for name in self.load.meters:
            self.publish(name)
        self.publish_dead_letter("invalid_json", topic=REFUSED[0], partition=REFUSED[1], offset=REFUSED[2])
        self.answers = dict(self.published.newest)

    def publish(self, name: str, version: int = 5, readings: int = 0, total: int = 0, **changes: Any) -> None:
        """Publish the snapshot of a meter, with a difference in its state, and its feedback."""
        meter = self.load.meters[name]
        result = {"name": f"owner of {meter.plate}"}
        state = {"readings": meter.readings + readings, "total": meter.total + total, "plate": meter.plate}
        answer = {"fingerprint": meter.plate, "status": "result", "result": result}
        snapshot = {"device_id": name, "epoch": 1, "version": version, "state": state, "enrichments": {"owner": answer}}
        self.published.take(app.topics.snapshots, None, orjson.dumps(snapshot | changes))
        self.published.take(app.topics.feedback, None, orjson.dumps(answer | {"device_id": name}))

    def publish_dead_letter(self, reason: str, key: bytes | None = None, **facts: Any) -> None:
        """Publish a dead letter."""
        self.published.take(app.topics.dead_letters, key, orjson.dumps({"reason": reason} | facts))

    def verdict(self) -> Verdict:
        """Judge."""
        return judge(self.load.meters, {REFUSED}, self.published, self.answers)


@pytest.fixture
def run() -> Run:
    return Run()


def lose_event(run: Run) -> None:
    run.publish(next(iter(run.load.meters)), 6, readings=-1)


def lose_meter(run: Run) -> None:
    name = max(run.load.meters, key=lambda name: run.load.meters[name].readings)
    run.published.newest.pop(name)
    run.load.meters[name].readings = 1


def count_twice(run: Run) -> None:
    run.publish(next(iter(run.load.meters)), 6, readings=1)


def replace_event(run: Run) -> None:
    run.publish(next(iter(run.load.meters)), 6, total=1)


def lose_answer(run: Run) -> None:
    run.publish(next(iter(run.load.meters)), 6, enrichments={})


def answer_without_feedback(run: Run) -> None:
    run.published.feedback.clear()


def lose_dead_letter(run: Run) -> None:
    run.published.refused.clear()


def keep_old_answer(run: Run) -> None:
    name = next(iter(run.answers))
    run.answers[name] = run.answers[name] | {"version": 4}


def test_a_run_without_a_fault_is_right(run: Run) -> None:
    assert run.verdict() == Verdict()
    assert run.verdict().is_right


@pytest.mark.parametrize(
    ("fault", "column"),
    [
        (lose_event, "lost"),
        (lose_meter, "lost"),
        (count_twice, "twice"),
        (replace_event, "lost"),
        (replace_event, "twice"),
        (lose_answer, "missing"),
        (answer_without_feedback, "missing"),
        (lose_dead_letter, "lost"),
        (keep_old_answer, "lost"),
    ],
)
def test_each_fault_of_the_loop_is_found(run: Run, fault: Callable[[Run], None], column: str) -> None:
    fault(run)
    assert run.verdict()._asdict()[column] > 0
    assert not run.verdict().is_right


def test_a_missing_answer_is_accounted_for_by_its_dead_letter(run: Run) -> None:
    name = next(iter(run.load.meters))
    run.publish(name, 6, enrichments={})
    run.answers[name] = run.published.newest[name]
    assert run.verdict().missing == 1
    for plate, missing in (("another", 1), (run.load.meters[name].plate, 0)):
        head = orjson.dumps({"device_id": name, "state": {"plate": plate}}).decode()
        run.publish_dead_letter("enrichment_failed", name.encode(), enrichment="owner", head=head)
        assert run.verdict() == Verdict(missing=missing)


def test_an_old_snapshot_that_is_published_again_changes_nothing(run: Run) -> None:
    run.publish(next(iter(run.load.meters)), 4, readings=-1)
    assert run.verdict().is_right


@pytest.mark.parametrize("answer", [None, {"epoch": 1, "version": 4}, {"epoch": 0, "version": 6}])
def test_a_read_that_goes_back_is_found(answer: dict[str, Any] | None) -> None:
    reader = MonotonicReader(0, {})
    reader.take("a", {"epoch": 1, "version": 5})
    reader.take("b", None)
    reader.take("a", {"epoch": 1, "version": 5})
    assert not reader.backwards
    reader.take("a", answer)
    assert len(reader.backwards) == 1


def test_each_fault_of_the_list_has_a_run_and_a_name_of_its_own() -> None:
    assert {fault.number for fault in FAULTS} == {*range(37)} - {22}, "22 is declared as 21"
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_a_row_that_is_not_right_is_shown(tmp_path: Path) -> None:
    results = Results(tmp_path / "faults.json")
    results.add(FAULTS[0], "1", Verdict(stall_s=1.5, repeated=2))
    results.add(FAULTS[0], "2", Verdict(stall_s=2.5, lost=3, people=1), "why")
    again = Results(tmp_path / "faults.json")
    assert "| 0 none | 2 | 3 | 0 | 0 | 2 | 0 | 2.5 s | 1 |" in again.page("")
    assert "- 0 none, seed 2: why" in again.page("")
    assert FAULTS[1].name in again.page("").partition("## Not run")[2]


def test_the_tests_of_the_catalogue_exist() -> None:
    assert all((CHECKOUT / path).exists() for fault in FAULTS for path in fault.tests)
