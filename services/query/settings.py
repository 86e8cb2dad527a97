"""The settings of the service, from environment variables with the prefix STATELOOP_."""

from __future__ import annotations

import socket
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator
from typing_extensions import override

from contracts.settings import ApplicationSettings, Duration
from services.query.errors import ExposedError
from services.query.limits import WatchLimits


def _address(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https") or not rest or "/" in rest.rstrip("/") or "@" in rest:
        raise ValueError("write it as http(s)://host:port")
    return url.rstrip("/")


Address = Annotated[str, AfterValidator(_address)]


def is_loopback(host: str) -> bool:
    """Return whether the name or address is a loopback address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


RECONNECT = {
    "topic.metadata.refresh.interval.ms": "5000",
    "reconnect.backoff.ms": "50",
    "reconnect.backoff.max.ms": "500",
}
"""How soon a client notices that a broker is back."""


class QuerySettings(ApplicationSettings):
    """Settings of one instance. Durations are a number of seconds, or ISO 8601."""

    query_data: Path = Path(".stateloop/query")
    """The folder of the embedded store. If it is lost, its content is read from the topics again."""
    http_host: str = "127.0.0.1"
    """The address to listen at; 0.0.0.0 in a container."""
    http_port: int = Field(default=8090, ge=0, le=65535)
    """The port to listen at; 0 takes any free one, and the log has it."""
    url: Address | None = None
    """The URL at which other instances and clients reach this one; by default from host and port."""
    instance: str = Field(default_factory=socket.gethostname, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    """The name of the instance: unique, and the same after a restart; by default the machine's name."""
    group: str | None = None
    """The consumer group, whose instances share the partitions; by default `<application's name>-query`, with the
    names of all applications of a suite."""
    session_timeout: Duration = timedelta(seconds=6)
    """The group reassigns the partitions of an instance that is silent for so long."""
    lease: Duration = timedelta(seconds=3)
    """How long an instance answers without contact to the others; a quarter later a standby takes over."""
    replicas: int = Field(default=2, ge=1, le=3)
    """The number of instances that read each partition: the owner and its standbys."""
    tokens: Path | None = None
    """The file of tokens; without it no token is required, which is accepted on a loopback address only."""
    peer_token: Annotated[SecretStr, Field(min_length=16)] | None = None
    """The token of the instances themselves, where tokens are required: the same for all, at least 16 characters."""
    origins: tuple[str, ...] = ()
    """The origins of other sites' pages that may open a WebSocket, as ["https://console.example.org"].

    Without tokens, they are also the accepted host names, with localhost and that of STATELOOP_URL.
    """
    rate: int = Field(default=10_000, ge=0)
    """The keys per second that a token, or an address without one, may request; 0: unlimited."""
    max_batch_keys: int = Field(default=1_000, ge=1)
    """The maximum number of keys of a batch."""
    max_page_keys: int = Field(default=1_000, ge=1)
    """The maximum number of keys of a page."""
    largest_request: int = Field(default=1024 * 1024, ge=1024)
    """The maximum size of a request body, in bytes."""
    waits: int = Field(default=1_000, ge=0)
    """The maximum number of requests that wait for a version at the same time."""
    max_wait: Duration = timedelta(seconds=30)
    """The maximum time that a request waits for a version."""
    watch_connections: int = Field(default=WatchLimits.connections, ge=0)
    """The maximum number of watch connections of one token; of all clients where no token is required."""
    watch_subscriptions: int = Field(default=WatchLimits.subscriptions, ge=1)
    """The maximum number of subscriptions of one WebSocket."""
    watch_waiting: int = Field(default=WatchLimits.waiting_keys, ge=1)
    """The keys that may wait for one watching client; above it they are dropped, and the client has to read again."""
    watch_all_waiting_bytes: int = Field(default=WatchLimits.all_waiting_bytes, ge=1024 * 1024)
    """The bytes that may wait for all clients, 1 KiB for each key; above it the slowest are disconnected."""
    watch_marks: Annotated[Duration, Field(ge=timedelta(seconds=0.1), le=timedelta(seconds=10))] = timedelta(
        seconds=WatchLimits.mark_every_s
    )
    """The interval of marks on a watch stream; clients close a stream without messages after 20 seconds."""
    watch_stalled: Annotated[Duration, Field(ge=timedelta(seconds=1))] = timedelta(seconds=WatchLimits.stalled_s)
    """A watching client that reads nothing for so long, at most twice as long, is disconnected."""
    stop_within: Duration = timedelta(seconds=5)
    """How long open requests may take after a stop signal."""
    stuck_after: Duration = timedelta(seconds=120)
    """After how long without progress /healthz requests a restart."""
    jars: Path = Path(".stateloop/jars")
    """The folder of `stateloop jars`, which has the charts of the console."""
    scrape_targets: dict[str, tuple[Address, ...]] = Field(default_factory=dict)
    """The base URLs of the processes whose /metrics the console scrapes, by kind: {"job": ["http://host:port"], …}."""
    scrape_every: Annotated[Duration, Field(ge=timedelta(seconds=0.5))] = timedelta(seconds=2)
    """The interval between two scrapes."""

    @override
    def client(self) -> dict[str, str]:
        return RECONNECT | super().client()

    @model_validator(mode="after")
    def _check_lease(self) -> Self:
        """Reject a session timeout below the lease: a new owner waits for the end of the lease anyway."""
        if not timedelta(0) < self.lease < self.session_timeout:
            raise ValueError("STATELOOP_LEASE must be more than 0 and less than STATELOOP_SESSION_TIMEOUT")
        return self

    def watch_limits(self) -> WatchLimits:
        """Return the limits of watch connections."""
        return WatchLimits(
            waiting_keys=self.watch_waiting,
            all_waiting_bytes=self.watch_all_waiting_bytes,
            subscriptions=self.watch_subscriptions,
            connections=self.watch_connections,
            mark_every_s=self.watch_marks.total_seconds(),
            stalled_s=self.watch_stalled.total_seconds(),
        )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.http_host)

    def check_exposure(self) -> None:
        """Raise ExposedError if other machines could read states without a token."""
        if self.tokens is None and not self.loopback:
            raise ExposedError(self.http_host)
