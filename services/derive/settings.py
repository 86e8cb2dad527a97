"""The settings of the derive worker."""

from pydantic import Field

from contracts.model.application import Application
from contracts.model.suite import Suite
from contracts.settings import KafkaSettings


class DeriveSettings(KafkaSettings):
    """Read from the environment: STATELOOP_APPLICATION, STATELOOP_KAFKA, STATELOOP_GROUP, and so on."""

    application: str
    """The application, or the suite of applications, as package.module:name."""
    group: str | None = None
    """The consumer group; `<application>-derive` if unset. With a suite of several applications, the first part of
    their names: `<group>-<application>`."""
    max_poll_records: int = Field(default=500, ge=1)
    """The maximum number of snapshots of a partition in a batch, whose results are written together."""
    http_host: str = "127.0.0.1"
    """The address at which /healthz, /readyz and /metrics answer; in a container, 0.0.0.0."""
    http_port: int | None = Field(default=None, ge=0, le=65535)
    """Their port; 0 is any free one. Unset, they are not served."""

    def groups(self, suite: Suite) -> dict[str, Application]:
        """Return the applications with derived states or alerts, by the consumer group of their workers."""
        return {
            suite.group(one, self.group) if self.group else f"{one.name}-derive": one
            for one in suite.applications
            if one.derived_names
        }
