"""What a run must end with: the states by the events that arrived in time, and the true answers for them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from contracts.planning.plan import fingerprint, wanted
from contracts.records.decode import Decoder
from contracts.records.fold import Fold, present
from contracts.records.record import RecordError
from contracts.wire import Answer
from tests.simulation.api import true_answer
from tests.simulation.script import time_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from contracts import Application
    from contracts.planning.request import Request
    from contracts.records.record import Reason, Record
    from contracts.wire import Snapshot
    from contracts.wire.messages import Status

    Window = tuple[str, datetime]

MOST_ANSWERS = 20


class Expected(NamedTuple):
    """The states that events give, and the reasons for which others are refused, by partition and offset."""

    windows: dict[Window, Snapshot]
    refused: dict[tuple[int, int], Reason]


def expected(application: Application, events: Sequence[Record], partitions: int) -> Expected:
    """Return what these events give. The state of a window has no enrichments."""
    fold, refused = Fold(application), {}
    for record in events:
        stamp = record.timestamp
        decoder = Decoder(application, clock=lambda stamp=stamp: stamp, partitions=partitions)  # type: ignore[misc]
        try:
            for delta in decoder.event(record):
                fold.add(delta)
        except RecordError as error:
            refused[record.partition, record.offset] = error.reason
    windows = {window: present(application, window, partial) for window, partial in fold.windows.items()}
    return Expected(windows, refused)


def answered(application: Application, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the true answers to all requests that follow from it."""
    now = time_at(0.0)
    for _ in range(MOST_ANSWERS):
        requests = wanted(application, snapshot, now, now)
        if not requests:
            return snapshot
        answers = {request.enrichment: _answer(request, now) for request in requests}
        update = {"enrichments": {**snapshot.enrichments, **answers}, "version": snapshot.version + 1}
        snapshot = snapshot.model_copy(update=update)
    raise AssertionError("the enrichments never settle")


def _answer(request: Request, now: datetime) -> Answer:
    result = None if request.skipped else true_answer(target(request.enrichment, request.inputs))
    status: Status = "skipped" if request.skipped else "absence" if result is None else "result"
    return Answer(version=request.version, status=status, ts=now, fingerprint=request.fingerprint, result=result)


def target(enrichment: str, inputs: dict[str, Any]) -> str:
    """Return the target of the call that a request with these inputs makes."""
    match enrichment:
        case "owner":
            return f"/owners/{inputs['plate']}"
        case "street":
            return "/streets?" + urlencode({"name": inputs["owner"]["name"]})
    name = inputs["owner"]["name"] if inputs["owner"] else "nobody"
    return "/quotes?" + urlencode({"load": inputs["load"], "name": name})


class Explained(NamedTuple):
    """The calls that snapshots explain, by target, and the answers; and the true result by fingerprint."""

    calls: Counter[str]
    answers: Counter[tuple[Window, str, str]]
    """By window, enrichment and fingerprint."""
    results: dict[tuple[str, str], dict[str, Any] | None]


def explained(application: Application, windows: Mapping[Window, Sequence[Snapshot]]) -> Explained:
    """Return the calls that these snapshots explain: one for each change of the inputs of an enrichment."""
    found = Explained(Counter(), Counter(), {})
    fingerprints: dict[tuple[str, str], str] = {}
    for window, snapshots in windows.items():
        former: set[tuple[str, str]] = set()
        for snapshot in snapshots:
            inputs = {(name, target(name, values)): values for name, values in _possible_inputs(snapshot)}
            for call in inputs.keys() - former:
                name, called = call
                if call not in fingerprints:
                    fingerprints[call] = fingerprint(application.by_name[name], inputs[call])
                    found.results[name, fingerprints[call]] = true_answer(called)
                found.calls[called] += 1
                found.answers[window, name, fingerprints[call]] += 1
            former = set(inputs)
    return found


def _possible_inputs(snapshot: Snapshot) -> list[tuple[str, dict[str, Any]]]:
    """The inputs of the enrichments. The owner in its slot may be that of a former plate.

    An answer of a later version is that of a job that reads again what it has read before: it has no result yet.
    """
    state, slot = snapshot.state, snapshot.enrichments.get("owner")
    owner = slot.result if slot and "plate" in state else None
    found: list[tuple[str, dict[str, Any]]] = [("quote", {"load": state["load"], "owner": owner})]
    if "plate" in state:
        found.append(("owner", {"plate": state["plate"]}))
    if owner is not None:
        found.append(("street", {"owner": owner}))
    if slot and slot.order >= snapshot.order:
        found.append(("quote", {"load": state["load"], "owner": None}))
    return found
