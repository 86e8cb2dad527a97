"""What the service is told from outside, by environment variables with the prefix STATELOOP_."""

from __future__ import annotations

import socket
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from contracts.settings import Duration, KafkaSettings
from services.query.errors import ExposedError
from services.query.limits import WatchLimits


def _address(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https") or not rest or "/" in rest.rstrip("/") or "@" in rest:
        raise ValueError("write it as http(s)://host:port")
    return url.rstrip("/")


Address = Annotated[str, AfterValidator(_address)]


def is_loopback(host: str) -> bool:
    """Whether the name or address is this machine's own, wherever it is said."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class QuerySettings(KafkaSettings):
    """One instance. Times are durations: a number of seconds, or ISO 8601."""

    application: str
    """Where the application is: package.module:name. Its states can be asked."""
    query_data: Path = Path(".stateloop/query")
    """The folder of the embedded store. It may be lost: it is made again from the topics."""
    http_host: str = "127.0.0.1"
    """The address at which it answers; in a container, 0.0.0.0."""
    http_port: int = Field(default=8090, ge=0, le=65535)
    """Its port; 0 is any free one, which the log tells."""
    url: Address | None = None
    """Where other instances and clients reach this one; unset, host and port."""
    instance: str = Field(default_factory=socket.gethostname, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    """Its name, the same after a restart and no other's; the machine's unless set."""
    group: str | None = None
    """The consumer group; `<application's name>-query` unless set. Instances of one group share the partitions."""
    session_timeout: Duration = timedelta(seconds=6)
    """After how long without a sign of an instance the group gives its partitions to others."""
    lease: Duration = timedelta(seconds=3)
    """How long an instance answers without contact to the others; after a quarter more a copy takes its place."""
    replicas: int = Field(default=2, ge=1, le=3)
    """How many instances follow each partition: its owner, and copies that stand by."""
    tokens: Path | None = None
    """The file of the tokens that may ask; unset, anybody may, which is refused but on a loopback address."""
    peer_token: Annotated[SecretStr, Field(min_length=16)] | None = None
    """What instances show each other where tokens are needed: the same text for all, of 16 characters at least."""
    origins: tuple[str, ...] = ()
    """The origins of pages elsewhere that may open a WebSocket here, as ["https://console.example.org"].

    Without tokens, also the only names beside localhost and STATELOOP_URL under which it may be asked.
    """
    rate: int = Field(default=10_000, ge=0)
    """How many keys a second a token, or an address without one, may ask for; 0: as many as it likes."""
    batch_most: int = Field(default=1_000, ge=1)
    """How many keys one batch may have."""
    page_most: int = Field(default=1_000, ge=1)
    """How many keys one page may have."""
    largest_request: int = Field(default=1024 * 1024, ge=1024)
    """How many bytes the body of a request may have."""
    waits: int = Field(default=1_000, ge=0)
    """How many requests may wait for a version at once."""
    wait_most: Duration = timedelta(seconds=30)
    """How long one may wait."""
    watch_connections: int = Field(default=WatchLimits.connections, ge=0)
    """How many connections of one token may watch; where none is needed, in all."""
    watch_subscriptions: int = Field(default=WatchLimits.subscriptions, ge=1)
    """How many subscriptions one WebSocket may have."""
    watch_waiting: int = Field(default=WatchLimits.waiting_keys, ge=1)
    """How many keys may wait for one client that watches; beyond it all is dropped, and it has to read anew."""
    watch_waiting_bytes: int = Field(default=WatchLimits.waiting_bytes, ge=1024)
    """The same in bytes of their values."""
    watch_all_waiting_bytes: int = Field(default=WatchLimits.all_waiting_bytes, ge=1024 * 1024)
    """How many bytes may wait for all clients together, with 1 KiB for each key; beyond it the slowest are cut off."""
    watch_marks: Annotated[Duration, Field(ge=timedelta(seconds=0.1), le=timedelta(seconds=10))] = timedelta(
        seconds=WatchLimits.mark_every_s
    )
    """How often who watches is told how far it is; clients give up a stream that says nothing for 20 seconds."""
    watch_stalled: Annotated[Duration, Field(ge=timedelta(seconds=1))] = timedelta(seconds=WatchLimits.stalled_s)
    """After how long a client that watches and takes nothing is cut off."""
    stop_within: Duration = timedelta(seconds=5)
    """How long answers under way may take when it is told to stop."""
    stuck_after: Duration = timedelta(seconds=120)
    """After how long without progress /healthz asks for a restart."""
    jars: Path = Path(".stateloop/jars")
    """The folder of `make jars`, which has the charts of the console."""
    scrape_targets: dict[str, tuple[Address, ...]] = Field(default_factory=dict)
    """The base URLs of the processes whose /metrics the console scrapes, by kind: {"job": ["http://host:port"], …}."""
    scrape_every: Annotated[Duration, Field(ge=timedelta(seconds=0.5))] = timedelta(seconds=2)
    """The interval between two scrapes."""

    @model_validator(mode="after")
    def _check_lease(self) -> Self:
        """The group must not be quicker than the lease: whoever it gives a partition waits for its end anyway."""
        if not timedelta(0) < self.lease < self.session_timeout:
            raise ValueError("STATELOOP_LEASE must be more than 0 and less than STATELOOP_SESSION_TIMEOUT")
        return self

    def watch_limits(self) -> WatchLimits:
        """The limits of connections that watch."""
        return WatchLimits(
            waiting_keys=self.watch_waiting,
            waiting_bytes=self.watch_waiting_bytes,
            all_waiting_bytes=self.watch_all_waiting_bytes,
            subscriptions=self.watch_subscriptions,
            connections=self.watch_connections,
            mark_every_s=self.watch_marks.total_seconds(),
            stalled_s=self.watch_stalled.total_seconds(),
        )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can ask."""
        return is_loopback(self.http_host)

    def check_exposure(self) -> None:
        """Nobody but this machine may ask without a token. Raises ExposedError."""
        if self.tokens is None and not self.loopback:
            raise ExposedError(self.http_host)
