"""The settings of workers: processes that read a topic as members of a consumer group."""

from datetime import timedelta

from pydantic import Field

from contracts.settings.base import Duration, EndpointSettings


class WorkerSettings(EndpointSettings):
    """A worker. Times are durations: a number of seconds, or ISO 8601."""

    group: str | None = None
    """The consumer group, whose workers share the load. Unset, an enrichment worker has `<application>-enrichment`, and
    a derive worker `<application>-derive`. With a suite of several applications, it is the first part of their names:
    `<group>-<application>`. The groups of a sink are `<group>-<state>`; unset, `sink-<store>-<state>`, so that a sink
    of Redis and one of PostgreSQL both read all records."""
    max_poll_records: int = Field(default=500, ge=1)
    """The maximum number of records per read from Kafka, and of the snapshots of a partition whose results a derive
    worker writes together."""


class WorkerLimitSettings(WorkerSettings):
    """The limits of a worker whose work may take long: calls of APIs, writes to a store."""

    unfinished: int = Field(default=20_000, ge=1)
    """The number of unfinished records and requests at which reading pauses; it resumes at half of it."""
    unfinished_bytes: int = Field(default=64 * 1024 * 1024, ge=1)
    """The same limit in bytes."""
    stop_within: Duration = timedelta(seconds=10)
    """The time for which a worker that received SIGTERM waits for its running requests, or for the current write."""
    stuck_after: Duration = timedelta(seconds=120)
    """The time without progress after which /healthz returns 503. It is longer where the work takes longer: twice the
    longest pause of an API, or three times the timeout of a store."""
