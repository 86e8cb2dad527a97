"""Which requests a snapshot calls for: the one decision that the loop turns on, as pure functions."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from contracts.application import Application
from contracts.enrichment import Enrichment
from contracts.wire import Answer, Snapshot


class Progress(StrEnum):
    """Where an enrichment stands on one snapshot."""

    WAITING = "waiting"
    """A need has no value yet, or only one whose own inputs have changed since."""
    SKIPPED = "skipped"
    """A need was answered without a result, or was skipped, so this one cannot run."""
    PLANNABLE = "plannable"
    ANSWERED = "answered"
    CLOSED = "closed"
    """An answer could not count any more: the life is over, or the slot has one of a version that is still to come."""


@dataclass(frozen=True)
class Request:
    """One planned call: (life, enrichment, fingerprint of its inputs), and the version that it was planned on."""

    device_id: str
    first_seen: datetime
    enrichment: str
    fingerprint: str
    version: int
    as_of: datetime
    inputs: dict[str, Any]
    """The inputs as they are on the wire."""

    @property
    def identity(self) -> tuple[str, datetime, str, str]:
        """What two requests share when one of them is enough."""
        return self.device_id, self.first_seen, self.enrichment, self.fingerprint


class _Standing(NamedTuple):
    """Where an enrichment, or a field of the state, stands, and what that means for those that need it."""

    progress: Progress
    result: Any = None
    """What serves those that need it: that of an answer to the present inputs, even a stale one."""
    coming: bool = False
    """Whether a first answer to the present inputs is being asked for, of this one or of what it waits for."""
    inputs: dict[str, Any] = {}  # noqa: RUF012  # never written to

    @property
    def gives_nothing(self) -> bool:
        """Whether the present inputs lead to no result."""
        return self.progress in (Progress.ANSWERED, Progress.SKIPPED) and self.result is None


def plan(application: Application, snapshot: Snapshot, now: datetime) -> list[Request]:
    """The requests that this snapshot calls for: inputs present, and not answered for them, or too long ago.

    None once the life and its grace are over by the clock; a replay's times are not those of the clock.
    """
    return [
        _request(application.by_name[name], standing.inputs, snapshot)
        for name, standing in _standings(application, snapshot, now).items()
        if standing.progress is Progress.PLANNABLE
    ]


def progress(application: Application, one: Enrichment, snapshot: Snapshot, now: datetime) -> Progress:
    """Where one enrichment stands on a snapshot."""
    return _standings(application, snapshot, now)[one.name].progress


def settled(application: Application, snapshot: Snapshot, now: datetime) -> bool:
    """Whether no enrichment can run or is under way: what the state has now is all that it calls for."""
    standings = _standings(application, snapshot, now).values()
    return all(standing.progress is not Progress.PLANNABLE for standing in standings)


def fingerprint(one: Enrichment, inputs: dict[str, Any]) -> str:
    """Names the inputs of an enrichment: equal for equal inputs, whatever the device."""
    named = orjson.dumps([one.name, inputs], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(named, digest_size=12).hexdigest()


def _standings(application: Application, snapshot: Snapshot, now: datetime) -> dict[str, _Standing]:
    """All enrichments, each after what it needs: what a slot still holds of former inputs serves nobody."""
    over = _is_over(application, snapshot, now)
    found: dict[str, _Standing] = {}
    for one in application.enrichments:
        needs = [found.get(need.name) or _field(snapshot.state.get(need.name)) for need in one.needs]
        inputs = {need.name: standing.result for need, standing in zip(one.needs, needs, strict=True)}
        found[one.name] = _blocked(one, needs) or _asked(one, inputs, snapshot, now, over=over)
    return found


def _is_over(application: Application, snapshot: Snapshot, now: datetime) -> bool:
    """Whether the job would refuse an answer as late."""
    state = application.state
    return not application.topics.replay and now > snapshot.first_seen + state.lifetime + state.grace


def _field(value: Any) -> _Standing:
    return _Standing(Progress.WAITING if value is None else Progress.ANSWERED, value)


def _blocked(one: Enrichment, needs: list[_Standing]) -> _Standing | None:
    """What keeps an enrichment from running now, if anything does."""
    required = [standing for need, standing in zip(one.needs, needs, strict=True) if not need.optional]
    if any(standing.gives_nothing for standing in required):
        return _Standing(Progress.SKIPPED)
    if any(standing.result is None and not standing.coming for standing in required):
        return _Standing(Progress.WAITING)
    if any(standing.coming for standing in needs):
        return _Standing(Progress.WAITING, coming=True)
    return None


def _asked(one: Enrichment, inputs: dict[str, Any], snapshot: Snapshot, now: datetime, *, over: bool) -> _Standing:
    """Where an enrichment stands that can run, by the answer in its slot.

    An honest answer was merged after the version that it was computed from. One of this version or a later one (forged,
    or of a state that is being rebuilt) would win over any that is computed now.
    """
    answer = snapshot.enrichments.get(one.name)
    counts = not over and (answer is None or answer.version < snapshot.version)
    if answer is None or answer.fingerprint != fingerprint(one, inputs):
        return _Standing(Progress.PLANNABLE if counts else Progress.CLOSED, coming=counts, inputs=inputs)
    anew = counts and _is_stale(one, answer, now)
    return _Standing(Progress.PLANNABLE if anew else Progress.ANSWERED, answer.result, inputs=inputs)


def _is_stale(one: Enrichment, answer: Answer, now: datetime) -> bool:
    return one.stale_after is not None and now - answer.ts > one.stale_after


def _request(one: Enrichment, inputs: dict[str, Any], snapshot: Snapshot) -> Request:
    return Request(
        device_id=snapshot.device_id,
        first_seen=snapshot.first_seen,
        enrichment=one.name,
        fingerprint=fingerprint(one, inputs),
        version=snapshot.version,
        as_of=snapshot.as_of,
        inputs=inputs,
    )
