"""Which requests a snapshot calls for: the one decision that the loop turns on, as pure functions."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson

from contracts.application import Application
from contracts.enrichment import Enrichment
from contracts.wire import Snapshot


class Progress(StrEnum):
    """Where an enrichment stands on one snapshot."""

    WAITING = "waiting"
    """A need has no value yet, or one that is being asked for anew since its own inputs changed."""
    SKIPPED = "skipped"
    """A need was answered without a result, so this one cannot run."""
    PLANNABLE = "plannable"
    ANSWERED = "answered"


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


def plan(application: Application, snapshot: Snapshot, now: datetime) -> list[Request]:
    """The requests that this snapshot calls for: inputs present, and not answered for them, or too long ago."""
    return [
        _request(one, snapshot)
        for one in application.enrichments
        if progress(application, one, snapshot, now) is Progress.PLANNABLE
    ]


def progress(application: Application, one: Enrichment, snapshot: Snapshot, now: datetime) -> Progress:
    """Where one enrichment stands on a snapshot."""
    for need in one.needs:
        upstream = application.by_name.get(need.name)
        stands = progress(application, upstream, snapshot, now) if upstream else None
        if upstream and stands is Progress.PLANNABLE and not _answers_these_inputs(upstream, snapshot):
            return Progress.WAITING
        if _input(snapshot, need.name) is None and not need.optional:
            return Progress.SKIPPED if stands in (Progress.ANSWERED, Progress.SKIPPED) else Progress.WAITING
    if not _answers_these_inputs(one, snapshot):
        return Progress.PLANNABLE
    stale = one.stale_after is not None and now - snapshot.enrichments[one.name].ts > one.stale_after
    return Progress.PLANNABLE if stale else Progress.ANSWERED


def settled(application: Application, snapshot: Snapshot, now: datetime) -> bool:
    """Whether no enrichment can run or is under way: what the state has now is all that it calls for."""
    return all(progress(application, one, snapshot, now) is not Progress.PLANNABLE for one in application.enrichments)


def fingerprint(one: Enrichment, snapshot: Snapshot) -> str:
    """Names the inputs of an enrichment: equal for equal inputs, whatever the device."""
    inputs = {need.name: _input(snapshot, need.name) for need in one.needs}
    named = orjson.dumps([one.name, inputs], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(named, digest_size=12).hexdigest()


def _answers_these_inputs(one: Enrichment, snapshot: Snapshot) -> bool:
    answer = snapshot.enrichments.get(one.name)
    return answer is not None and answer.fingerprint == fingerprint(one, snapshot)


def _input(snapshot: Snapshot, name: str) -> Any:
    answer = snapshot.enrichments.get(name)
    return answer.result if answer is not None else snapshot.state.get(name)


def _request(one: Enrichment, snapshot: Snapshot) -> Request:
    return Request(
        device_id=snapshot.device_id,
        first_seen=snapshot.first_seen,
        enrichment=one.name,
        fingerprint=fingerprint(one, snapshot),
        version=snapshot.version,
        as_of=snapshot.as_of,
        inputs={need.name: _input(snapshot, need.name) for need in one.needs},
    )
