"""Settings from the environment: how all parts read and reject them, and the variables that exist."""

from contracts.settings.base import Duration, KafkaSettings, read
from contracts.settings.variables import KNOWN, PREFIX, unknown_variables

__all__ = ["KNOWN", "PREFIX", "Duration", "KafkaSettings", "read", "unknown_variables"]
