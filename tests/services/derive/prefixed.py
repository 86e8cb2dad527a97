"""The flights on topics of one test, with the prefix from the environment."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from contracts import Application, Suite, Topics
from examples.flights.application import app as flights

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel

    from contracts.wire import Snapshot

(aircraft,) = flights.derived
HOLD = Path(os.environ.get("PREFIXED_HOLD", "nowhere/hold"))


def gated(snapshot: Snapshot) -> Iterable[tuple[str, BaseModel]]:
    """Derive the records of the flights, once the file that the environment names is gone."""
    if HOLD.exists():
        HOLD.with_suffix(".reached").touch()
    while HOLD.exists():
        time.sleep(0.01)
    return aircraft.of(snapshot)


def application(name: str, prefix: str, derived: str) -> Application:
    """The flights under another name, and with another name of what they derive."""
    return Application(
        name=name,
        event=flights.event,
        state=flights.state,
        enrichments=flights.enrichments,
        topics=Topics(prefix=os.environ.get("PREFIXED_PREFIX", "") + prefix, replay=True),
        query=flights.query,
        derived=(replace(aircraft, name=derived, of=gated),),
    )


app = application("flights", "", "aircraft")
suite = Suite(app, application("charters", "charters.", "jets"))
