"""Snapshots of flights at each stage, as the job publishes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

FIRST = datetime(2013, 1, 1, 10, tzinfo=UTC)
CARRIERS = ("UA", "DL", "B6", "AA", "MQ", "WN", "US", "EV")
ROUTES = (("EWR", "IAH"), ("LGA", "MIA"), ("JFK", "BQN"), ("JFK", "SFO"), ("LGA", "ATL"), ("EWR", "ORD"))


def key_of(number: int) -> str:
    """Return the device of a flight."""
    origin, dest = ROUTES[number % len(ROUTES)]
    return f"2013-01-01/{CARRIERS[number % len(CARRIERS)]}/{100 + number}/{origin}-{dest}"


def flight(number: int, version: int) -> dict[str, Any]:
    """Return the snapshot of one flight after so many records."""
    origin, dest = ROUTES[number % len(ROUTES)]
    begun = FIRST + timedelta(minutes=number)
    status = "scheduled" if version < 4 else "departed" if version < 6 else "landed"
    state: dict[str, Any] = {
        "events": 1 + (version >= 4) + (version >= 6),
        "status": status,
        "carrier": CARRIERS[number % len(CARRIERS)],
        "number": 100 + number,
        "origin": origin,
        "dest": dest,
        "tailnum": f"N{300 + number}AA" if version >= 4 else None,
        "scheduled_departure": iso(begun + timedelta(hours=2)),
        "departed_at": iso(begun + timedelta(hours=2, minutes=7)) if version >= 4 else None,
        "landed_at": iso(begun + timedelta(hours=5)) if version >= 6 else None,
        "delay": 7 + number % 50 if version >= 4 else None,
        "mean_delay": 3.5 + number % 50 if version >= 4 else None,
        "airports": [origin] if version < 6 else [origin, dest],
    }
    return {
        "device_id": key_of(number),
        "first_seen": iso(begun),
        "version": version,
        "as_of": iso(begun + timedelta(minutes=version)),
        "state": state,
        "enrichments": enrichments(number, version, begun),
    }


def enrichments(number: int, version: int, begun: datetime) -> dict[str, Any]:
    """Return the enrichments by this version: some absent or failed, and others skipped."""
    found = {
        "airline": (2, "result", {"name": "United Air Lines Inc."}, None),
        "origin_airport": (2, "result", {"name": "Newark Liberty Intl", "lat": 40.6925, "lon": -74.168667}, None),
        "dest_airport": (
            3,
            "absence" if number % 6 == 2 else "result",
            {"name": "Intl", "lat": 29.98, "lon": -95.3},
            None,
        ),
        "route": (
            4,
            "skipped" if number % 6 == 2 else "result",
            {"distance_miles": 1400.2, "bearing_deg": 242.1},
            None,
        ),
        "aircraft": (5, "failure" if number % 7 == 3 else "result", aircraft(), "500 Internal Server Error, 12 tries"),
        "weather": (5, "result", {"temp_f": 39.02, "wind_mph": 12.6, "wind_deg": 260.0}, None),
    }
    present = {}
    for name, (since, status, result, why) in found.items():
        if version >= since:
            reason = {"failure": why, "skipped": "dest_airport: absence"}.get(status)
            present[name] = {
                "version": since - 1,
                "status": status,
                "ts": iso(begun + timedelta(minutes=since)),
                "fingerprint": f"{number:x}",
                **({"result": result} if status == "result" else {}),
                **({"reason": reason} if reason else {}),
            }
    return present


def aircraft() -> dict[str, Any]:
    """Return the result about a plane."""
    return {
        "manufacturer": "BOEING",
        "model": "737-824",
        "year": 1999,
        "seats": 149,
        "engines": 2,
        "engine": "Turbo-fan",
    }


def iso(time: datetime) -> str:
    """Return a time as on the wire."""
    return time.isoformat().replace("+00:00", "Z")
