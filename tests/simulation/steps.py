"""The steps of which tests make scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.script import Row, Script, Sent

if TYPE_CHECKING:
    from tests.simulation.script import Step


def sent(at: float, event: str = "e0", device: str = "d0", first_seen: float = 0.0) -> Sent:
    return Sent(at, device, event, first_seen, ts=at, plate="p1", load=1)


def row(at: float, high: int = 50, hold: int = 0) -> Row:
    return Row(at, "r0", f'{{"high": {high}, "low": {min(high, 20)}, "hold": {hold}}}')


def loaded(at: float, load: int, device: str = "d0") -> Sent:
    return Sent(at, device, f"e{at}", ts=at, plate="p1", load=load)


def derived(*steps: Step, application: str = "cars", backlog: int = 1000) -> Script:
    return Script(1, steps, application, partitions=1, derivers=1, backlog=backlog)
