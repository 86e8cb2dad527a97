"""What a worker is told from outside, by environment variables with the prefix STATELOOP_."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, IPvAnyNetwork, SecretStr, model_validator
from typing_extensions import override

from contracts.model.topics import READ_COMMITTED
from contracts.settings import Duration, KafkaSettings
from services.enrichment.errors import ApiUnknownError

if TYPE_CHECKING:
    from contracts import Application


def _base_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError("write it as http(s)://host[:port][/path], without user, query and fragment")
    return url.rstrip("/")


BaseUrl = Annotated[str, AfterValidator(_base_url)]
GroupProtocol = Literal["classic", "consumer"]
GROUP: dict[GroupProtocol, dict[str, str]] = {
    "classic": {
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": "10000",  # how long a killed worker's devices wait for another; Kafka's default is 45 s
    },
    "consumer": {"group.protocol": "consumer"},
}
NOT_WITH_CONSUMER = ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy")
"""What the broker says, and not the client, under the protocol `consumer`."""


class EnrichmentSettings(KafkaSettings):
    """One worker. Times are durations: a number of seconds, or ISO 8601."""

    application: str
    """Where the application is: package.module:name."""
    apis: dict[str, BaseUrl] = Field(default_factory=dict, examples=[{"city": "https://city.example"}])
    """Where each API is that the application names: its base URL."""
    api_headers: dict[str, dict[str, SecretStr]] = Field(default_factory=dict)
    """Secret headers by API, as {"city": {"Authorization": "Bearer …"}}; a value file:/path is read from there."""
    allowed_networks: tuple[IPvAnyNetwork, ...] = Field(default=(), examples=[["10.1.0.0/16"]])
    """The networks that may be called although they are not public, as ["10.1.0.0/16"]."""
    group: str | None = None
    """The consumer group; `<application's name>-enrichment` unless set. Workers of one group share the load."""
    group_protocol: GroupProtocol = "classic"
    """How the group shares partitions: `consumer` is that of KIP-848, from brokers of version 4.0 on."""
    in_flight: int = Field(default=1000, ge=1)
    """How many requests of one API may be under way at once."""
    unfinished: int = Field(default=20_000, ge=1)
    """How many snapshots may wait and requests be unanswered before reading pauses; it goes on at half of it."""
    unfinished_bytes: int = Field(default=64 * 1024 * 1024, ge=1)
    """The same in bytes of what was read."""
    parked: int = Field(default=1_000_000, ge=1)
    """How many requests for APIs that are away may wait beyond that, as offsets whose snapshots are read again."""
    window: int = Field(default=1_000_000, ge=1)
    """How many offsets of a partition may be read beyond the first that is not finished."""
    alarm_of: int = Field(default=1000, ge=1)
    """How many of the last requests of an API, and of the last snapshots, are looked at to see whether all fail."""
    alarm_share: float = Field(default=0.95, gt=0)
    """The share of them at which the worker stops; above 1 it never does."""
    alarm_first: int = Field(default=20, ge=1)
    """How many are looked at while none has succeeded since the worker's start."""
    fetch_most: int = Field(default=500, ge=1)
    """How many snapshots are read from Kafka at a time."""
    commit_every: Duration = timedelta(milliseconds=200)
    """How often finished offsets are committed: what was finished since is done again after a crash."""
    drain: Duration = timedelta(seconds=2)
    """How long a partition that moves to another worker waits for its requests under way."""
    stop_within: Duration = timedelta(seconds=10)
    """How long a worker that was told to stop waits for its requests under way."""
    remember: int = Field(default=100_000, ge=1)
    """How many lives, and how many answers not seen in the state yet, are remembered per partition at least."""
    stats_every: Duration = timedelta(seconds=5)
    """How often a line of figures is logged."""
    http_host: str = "127.0.0.1"
    """The address at which /healthz, /readyz and /metrics answer; in a container, 0.0.0.0."""
    http_port: int | None = Field(default=None, ge=0, le=65535)
    """Their port; 0 is any free one, which the log tells. Unset, they are not served."""
    tracing: bool = False
    """Whether to make traces; OpenTelemetry's own variables say where they go, as OTEL_EXPORTER_OTLP_ENDPOINT."""
    stuck_after: Duration = timedelta(seconds=120)
    """After how long without progress /healthz asks for a restart; or twice as long as an API may be left alone, if
    that is longer."""

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        """The lag is known as often as it is logged: an older one would be taken for work that does not move."""
        if self.stats_every >= self.stuck_after:
            raise ValueError("STATELOOP_STATS_EVERY must be less than STATELOOP_STUCK_AFTER")
        return self

    def base_urls(self, application: Application) -> dict[str, str]:
        """The base URL of each API that the application names. Raises ApiUnknownError for one that is not set."""
        named = sorted({one.api for one in application.enrichments})
        if missing := tuple(name for name in named if name not in self.apis):
            raise ApiUnknownError(missing)
        return {name: self.apis[name] for name in named}

    @model_validator(mode="after")
    def _check_group(self) -> Self:
        """A static member that was killed is locked out by `consumer` until its session is over."""
        if self.group_protocol == "consumer":
            if wrong := [name for name in NOT_WITH_CONSUMER if name in self.kafka_options]:
                raise ValueError(f"with group_protocol=consumer the broker decides on {', '.join(wrong)}: leave it out")
            if "group.instance.id" in self.kafka_options:
                raise ValueError("with group_protocol=consumer a killed worker could not come back: leave it out")
        return self

    def consumer(self, application: Application) -> dict[str, str]:
        """What makes a client a member of the group."""
        own = {**READ_COMMITTED, "group.id": self.group or application.enrichment_group}
        return GROUP[self.group_protocol] | self.client() | own

    @override
    def client(self) -> dict[str, str]:
        """What the consumer and the producer have in common."""
        own = {"topic.metadata.refresh.interval.ms": "10000", "reconnect.backoff.max.ms": "1000"}
        return own | super().client()
