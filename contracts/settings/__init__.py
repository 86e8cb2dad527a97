"""Settings from the environment: how all parts read and reject them, and the variables that exist."""

from contracts.settings.base import Duration, KafkaSettings, read
from contracts.settings.secrets import FILE, read_secret, read_secret_file
from contracts.settings.variables import KNOWN, PREFIX, unknown_variables

__all__ = [
    "FILE",
    "KNOWN",
    "PREFIX",
    "Duration",
    "KafkaSettings",
    "read",
    "read_secret",
    "read_secret_file",
    "unknown_variables",
]
