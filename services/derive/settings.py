"""The settings of the derive worker."""

from contracts.model.application import Application
from contracts.model.suite import Suite
from contracts.settings import WorkerSettings


class DeriveSettings(WorkerSettings):
    """Read from the environment: STATELOOP_APPLICATION, STATELOOP_KAFKA, STATELOOP_GROUP, and so on."""

    def groups(self, suite: Suite) -> dict[str, Application]:
        """Return the applications with derived states or alerts, by the consumer group of their workers."""
        return {
            suite.group(application, self.group) if self.group else application.derive_group: application
            for application in suite.applications
            if application.derived_names
        }
