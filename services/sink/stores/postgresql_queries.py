"""The SQL of the store in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from contracts.sinks import Windows

if TYPE_CHECKING:
    from contracts.sinks import Target

COLUMNS = {
    "key": "text",
    "window_start": "timestamp with time zone",
    "epoch": "bigint",
    "version": "bigint",
    "source": "bigint",
    "event_time": "timestamp with time zone",
    "value": "jsonb",
    "expires_at": "timestamp with time zone",
    "written_at": "timestamp with time zone",
}
"""The columns that a table must have, with their types as PostgreSQL writes them."""

SESSION = "SELECT set_config('idle_in_transaction_session_timeout', '60s', false)"
"""The server aborts the transaction of a dead sink, which locks its positions."""
LOCK_SCHEMA = "SELECT pg_advisory_xact_lock(hashtextextended('stateloop sink', 0))"
"""Two sinks do not create one table."""
CHECK_AT_ONCE = "SET CONSTRAINTS {} IMMEDIATE"
POSITIONS_TABLE = "stateloop_positions"
CREATE_POSITIONS = """
CREATE TABLE stateloop_positions (
    target text NOT NULL,
    topic text NOT NULL,
    "partition" integer NOT NULL,
    "position" bigint NOT NULL,
    PRIMARY KEY (target, topic, "partition")
)"""
FORGET_POSITIONS = "DELETE FROM stateloop_positions WHERE target = %s"
POSITIONS = 'SELECT "partition", "position" FROM stateloop_positions WHERE target = %s AND topic = %s'
ADD_POSITIONS = """
INSERT INTO stateloop_positions (target, topic, "partition", "position")
SELECT %s, %s, missing, 0 FROM unnest(%s::integer[]) AS missing ORDER BY missing
ON CONFLICT DO NOTHING"""
MOVE_POSITIONS = """
UPDATE stateloop_positions AS present SET "position" = move."position"
FROM unnest(%s::integer[], %s::bigint[], %s::bigint[]) AS move ("partition", expected, "position")
WHERE present.target = %s AND present.topic = %s
  AND present."partition" = move."partition" AND present."position" = move.expected"""
TABLE_EXISTS = "SELECT to_regclass(%s) IS NOT NULL"
TABLE_COLUMNS = """
SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"""
IS_UNIQUE = """
SELECT EXISTS (
    SELECT FROM pg_index WHERE indrelid = to_regclass(%s) AND indisunique AND indpred IS NULL AND %s::text[] = (
        SELECT array_agg(attname::text ORDER BY attname) FROM pg_attribute
        WHERE attrelid = indrelid AND attnum = ANY (indkey)
    )
)"""

CREATE_TABLE = """
CREATE TABLE {table} (
    key text COLLATE "C" NOT NULL,
    window_start timestamptz NOT NULL,
    epoch bigint NOT NULL,
    version bigint NOT NULL,
    source bigint NOT NULL,
    event_time timestamptz NOT NULL,
    value jsonb NOT NULL,
    expires_at timestamptz,
    written_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY ({identity})
) WITH (fillfactor = 85)"""
CREATE_INDEX = "CREATE INDEX ON {table} (expires_at)"
REMOVE = """
DELETE FROM {table} AS present USING unnest(%s::text[], %s::timestamptz[]) AS deletion (key, window_start)
WHERE present.key = deletion.key
  AND (deletion.window_start IS NULL OR present.window_start = deletion.window_start)"""
WRITE = """
INSERT INTO {table} AS present (key, window_start, epoch, version, source, event_time, value, expires_at)
SELECT key, window_start, epoch, version, source, event_time, value, expires_at FROM json_to_recordset(%s) AS new (
    key text, window_start timestamptz, epoch bigint, version bigint, source bigint, event_time timestamptz,
    value jsonb, expires_at timestamptz
)
ON CONFLICT ({identity}) DO UPDATE SET
    window_start = excluded.window_start, epoch = excluded.epoch, version = excluded.version,
    source = excluded.source, event_time = excluded.event_time, value = excluded.value,
    expires_at = excluded.expires_at, written_at = now()
WHERE (present.window_start, present.epoch, present.version, present.source)
    < (excluded.window_start, excluded.epoch, excluded.version, excluded.source)"""
REMOVE_EXPIRED = """
WITH expired AS (
    SELECT tableoid, ctid FROM {table} WHERE expires_at <= %s ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED
)
DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM expired))
  AND (tableoid, ctid) IN (SELECT tableoid, ctid FROM expired)"""
"""The array finds the rows by their place, without a scan of the table. Two partitions have the same places."""


def check_at_once(schema: str | None, constraint: str | None) -> sql.Composed:
    """Check a constraint at the end of each statement; all of them if an error names none, as that of a trigger."""
    named = sql.Identifier(schema, constraint) if schema and constraint else sql.SQL("ALL")
    return sql.SQL(CHECK_AT_ONCE).format(named)


class TableQueries:
    """The queries of one table."""

    def __init__(self, target: Target) -> None:
        self.identity = ["key", "window_start"] if target.windows is Windows.ALL else ["key"]
        parts = {
            "table": sql.Identifier(target.name),
            "identity": sql.SQL(", ").join(map(sql.Identifier, self.identity)),
        }
        self.create = (sql.SQL(CREATE_TABLE).format(**parts), sql.SQL(CREATE_INDEX).format(**parts))
        self.write = sql.SQL(WRITE).format(**parts)
        self.remove = sql.SQL(REMOVE).format(**parts)
        self.remove_expired = sql.SQL(REMOVE_EXPIRED).format(**parts)
        self.name = sql.Identifier(target.name).as_string()
        """Quoted, as `to_regclass` takes it."""
