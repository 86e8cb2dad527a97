"""Settings of a redrive: environment variables with the prefix STATELOOP_."""

from __future__ import annotations

from contracts.settings import KafkaSettings


class RedriveSettings(KafkaSettings):
    """The application whose dead letters are redriven, as package.module:name."""

    application: str
    """Where the application is: package.module:name."""
