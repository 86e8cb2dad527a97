"""Settings from the environment: how all parts read and reject them, and the variables that exist."""

from contracts.settings.base import (
    ApplicationSettings,
    Duration,
    EndpointSettings,
    EnvironmentSettings,
    KafkaSettings,
    read,
)
from contracts.settings.secrets import FILE, read_secret, read_secret_file
from contracts.settings.variables import KNOWN, PREFIX, unknown_variables
from contracts.settings.worker import WorkerLimitSettings, WorkerSettings

__all__ = [
    "FILE",
    "KNOWN",
    "PREFIX",
    "ApplicationSettings",
    "Duration",
    "EndpointSettings",
    "EnvironmentSettings",
    "KafkaSettings",
    "WorkerLimitSettings",
    "WorkerSettings",
    "read",
    "read_secret",
    "read_secret_file",
    "unknown_variables",
]
