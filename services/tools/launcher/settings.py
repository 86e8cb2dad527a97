"""The launcher's settings, read from the environment."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import combinations
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from contracts.settings import Duration, EnvironmentSettings

MOST_WORKERS = 64
OTHERS = 3
"""The processes with an HTTP port in addition to the workers: query service, job, derive worker."""
MOST_PORTS = MOST_WORKERS + OTHERS - 1


class LauncherSettings(EnvironmentSettings):
    """The settings of the loop on one machine: STATELOOP_DATA, STATELOOP_BROKER_PORT, and so on."""

    application: str = "examples.departures.application:suite"
    """The application, or the suite of applications, as package.module:name. The modules `reference`, `replay`
    and `source` of its package are started too, or of the first package of its applications that has these modules.
    The default is an example, which the checkout has, and an installed wheel has not."""
    data: Path = Path(".stateloop")
    """The folder of all data."""
    jars: Path = Path(".stateloop/jars")
    """The folder of `stateloop jars`."""
    kafka: str | None = None
    """Brokers to use instead of the embedded one, as host:port."""
    broker_port: int = Field(default=9092, ge=1, le=65534)
    """The port of the embedded broker, which uses the next one too."""
    reference_port: int = Field(default=8081, ge=1, le=65535)
    workers: int = Field(default=2, ge=0, le=MOST_WORKERS)
    """The number of enrichment workers."""
    http_port: int = Field(default=8090, ge=1, le=65535 - MOST_PORTS)
    """The port of the query service with the console; job, derive worker and workers use the next ports."""
    apis: dict[str, str] = Field(default_factory=dict, examples=[{"city": "https://city.example"}])
    """The base URLs of the APIs that the application declares, besides `reference`."""
    allowed_networks: tuple[str, ...] = Field(default=(), examples=[["10.1.0.0/16"]])
    """Networks whose addresses workers may call although they are not public, besides this machine's own."""
    browse: bool = True
    """Whether to open the console in a browser, where there is a desktop."""
    batch: Duration = timedelta(seconds=15)
    """The length of a batch of the Spark job: short, so that little is published again after a crash."""
    replay_from: date = date(2013, 1, 1)
    """The replay's first day."""
    replay_days: int = Field(default=365, ge=1)
    replay_speed: float = Field(default=600.0, gt=0)
    """Seconds of the data in one second."""

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers of all processes."""
        return self.kafka or f"127.0.0.1:{self.broker_port}"

    @model_validator(mode="after")
    def _apart(self) -> Self:
        """Reject overlapping ports: a process would restart until the launch gives up."""
        for (name, ports), (other, others) in combinations(self._ports().items(), 2):
            if ports.start < others.stop and others.start < ports.stop:
                raise ValueError(
                    f"STATELOOP_{name} and STATELOOP_{other} take the same port: move one ({_taken(ports)})"
                )
        return self

    def _ports(self) -> dict[str, range]:
        taken = {"REFERENCE_PORT": 1, "HTTP_PORT": OTHERS + self.workers, "BROKER_PORT": 2}
        if self.kafka is not None:
            del taken["BROKER_PORT"]
        first: dict[str, int] = {name: getattr(self, name.lower()) for name in taken}
        return {name: range(first[name], first[name] + count) for name, count in taken.items()}


def _taken(ports: range) -> str:
    return f"{ports.start} to {ports.stop - 1} are taken" if len(ports) > 1 else f"{ports.start} is taken"
