"""Stores the start of each device's window, so that all its events have the same `first_seen`."""

import sqlite3
from datetime import datetime, timedelta


def opened(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    with database:
        database.execute("CREATE TABLE IF NOT EXISTS windows (device TEXT PRIMARY KEY, first_seen TEXT)")
    return database


def first_seen(database: sqlite3.Connection, device: str, ts: datetime, lifetime: timedelta) -> datetime:
    """Return the start of the window of an event at `ts`. A new one is stored before the event is sent."""
    row = database.execute("SELECT first_seen FROM windows WHERE device = ?", (device,)).fetchone()
    if row and ts < (stored := datetime.fromisoformat(row[0])) + lifetime:
        return stored
    with database:
        database.execute("INSERT OR REPLACE INTO windows VALUES (?, ?)", (device, ts.isoformat()))
    return ts
