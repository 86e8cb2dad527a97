"""The settings of a worker: environment variables with the prefix STATELOOP_."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, IPvAnyNetwork, SecretStr, model_validator
from typing_extensions import override

from contracts.model.alerts import webhook_apis
from contracts.settings import ApplicationSettings, Duration, WorkerLimitSettings
from services.enrichment.calls.suspension import FailureLimits
from services.enrichment.errors import ApiUnknownError
from services.runtime.worker.subscription import GroupProtocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from contracts import Alerts, Application, Suite, Webhook


def _base_url(url: str) -> str:
    parts = urlsplit(url)
    try:
        _ = (parts.hostname or "").encode("idna"), parts.port
    except ValueError as error:
        raise ValueError(f"the host or the port is invalid ({error})") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError("write it as http(s)://host[:port][/path], without user, query and fragment")
    return url.rstrip("/")


BaseUrl = Annotated[str, AfterValidator(_base_url)]
REFERENCE = "reference"
"""The API that `stateloop up` and compose.yaml serve, whatever the application calls."""
NOT_WITH_CONSUMER = ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy")
"""The broker sets these, and not the client, under the protocol `consumer`."""


class AlertDelivery(NamedTuple):
    """The alerts of an application that a worker delivers to their webhook."""

    application: Application
    alerts: Alerts
    webhook: Webhook


class ApiSettings(ApplicationSettings):
    """The addresses of the APIs of an application, and how calls are authorized."""

    apis: dict[str, BaseUrl] = Field(default_factory=dict, examples=[{"city": "https://city.example"}])
    """The base URL of each API that the application declares, webhooks included."""
    api_headers: dict[str, dict[str, SecretStr]] = Field(default_factory=dict)
    """Secret headers by API, as {"city": {"Authorization": "Bearer …"}}; a value file:/path is read from that file."""
    webhook_secrets: dict[str, SecretStr] = Field(default_factory=dict)
    """The secret by which the calls of a webhook are signed, by API, as {"pager": "whsec_…"}; or file:/path."""
    allowed_networks: tuple[IPvAnyNetwork, ...] = Field(default=(), examples=[["10.1.0.0/16"]])
    """Networks whose addresses may be called although they are not public, as ["10.1.0.0/16"]."""

    def uncalled_apis(self, applications: Collection[Application]) -> list[str]:
        """Return a line for each API that a setting names and these applications do not call, as a misspelt one."""
        called = {api for application in applications for api in application.called_apis}
        signed = {api for application in applications for api in webhook_apis(application.alerts)}
        named = (
            ("APIS", self.apis.keys() - {REFERENCE}, called),
            ("API_HEADERS", self.api_headers.keys(), called),
            ("WEBHOOK_SECRETS", self.webhook_secrets.keys(), signed),
        )
        return [
            f"STATELOOP_{setting}: no {'webhook' if known is signed else 'API'} {name!r}; "
            f"this application calls {', '.join(sorted(known)) or 'none'}"
            for setting, names, known in named
            for name in sorted(names - known)
        ]


class EnrichmentSettings(ApiSettings, WorkerLimitSettings):
    """One worker. Times are durations: a number of seconds, or ISO 8601."""

    group_protocol: GroupProtocol = "classic"
    """The rebalance protocol of the group: `consumer` is that of KIP-848, for brokers from version 4.0 on."""
    in_flight: int = Field(default=1000, ge=1)
    """The maximum number of running requests per API."""
    max_deferred: int = Field(default=1_000_000, ge=1)
    """The number of deferred requests at which reading pauses: only their offsets are kept until their API is back."""
    max_uncommitted: int = Field(default=1_000_000, ge=1)
    """The maximum number of offsets of a partition that are read beyond the first unfinished one."""
    failure_window: int = Field(default=1000, ge=1)
    """The number of last requests per API, and of last snapshots, that the failure alarm observes."""
    failure_rate_threshold: float = Field(default=0.95, gt=0)
    """The share of failures at which an API is suspended, and at which undecodable snapshots stop the worker; above 1,
    never."""
    failure_min_count: int = Field(default=20, ge=1)
    """The number that is enough while none has succeeded since the start of the worker."""
    failure_trial_interval: Duration = timedelta(seconds=10)
    """The interval at which one request of a suspended API is tried."""
    commit_every: Duration = timedelta(milliseconds=200)
    """The interval of commits: after a crash, requests finished since the last one are repeated."""
    drain: Duration = timedelta(seconds=2)
    """The time for which a revoked partition waits for its running requests."""
    recent_entries: int = Field(default=100_000, ge=1)
    """The minimum number of windows, and of answers that the state does not show yet, remembered per partition."""
    stats_every: Duration = timedelta(seconds=5)
    """The interval of the log line with the metrics."""
    tracing: bool = False
    """Whether to export traces; OpenTelemetry's variables, as OTEL_EXPORTER_OTLP_ENDPOINT, set the destination."""

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        """The lag is measured when it is logged: an older value would look like a backlog without progress."""
        if self.stats_every >= self.stuck_after:
            raise ValueError("STATELOOP_STATS_EVERY must be less than STATELOOP_STUCK_AFTER")
        return self

    def base_urls(self, applications: Iterable[Application]) -> dict[str, str]:
        """Return the base URL of each API that these declare. Raises ApiUnknownError for one without."""
        named = sorted({api for application in applications for api in application.called_apis})
        if missing := tuple(name for name in named if name not in self.apis):
            raise ApiUnknownError(missing)
        return {name: self.apis[name] for name in named}

    @model_validator(mode="after")
    def _check_group(self) -> Self:
        """Under `consumer`, a killed static member cannot return before its session expires."""
        if self.group_protocol == "consumer":
            if wrong := [name for name in NOT_WITH_CONSUMER if name in self.kafka_options]:
                raise ValueError(f"with group_protocol=consumer the broker decides on {', '.join(wrong)}: leave it out")
            if "group.instance.id" in self.kafka_options:
                raise ValueError("with group_protocol=consumer a killed worker could not come back: leave it out")
        return self

    @property
    def failure_limits(self) -> FailureLimits:
        """The limits of failures."""
        return FailureLimits(
            self.failure_window,
            self.failure_rate_threshold,
            self.failure_min_count,
            self.failure_trial_interval.total_seconds(),
        )

    def groups(self, suite: Suite) -> dict[str, Application]:
        """Return the applications with enrichments, or all if nothing is called, by the group of their workers."""
        is_idle = not any(application.called_apis for application in suite.applications)
        return {
            suite.group(one, self.group) if self.group else one.enrichment_group: one
            for one in suite.applications
            if one.enrichments or is_idle
        }

    def webhooks(self, suite: Suite) -> dict[str, AlertDelivery]:
        """Return the alerts with webhooks, by the consumer group of their workers."""
        return {
            f"{suite.group(application, self.group)}-{alerts.name}"
            if self.group
            else application.webhook_group(alerts): AlertDelivery(application, alerts, alerts.webhook)
            for application in suite.applications
            for alerts in application.alerts
            if alerts.webhook is not None
        }

    @override
    def client(self) -> dict[str, str]:
        """Return the configuration that the consumer and the producer share."""
        return {"topic.metadata.refresh.interval.ms": "10000"} | super().client()
