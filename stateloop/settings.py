"""Settings from the environment, for programs beside the application: those that send its events, or serve its APIs."""

from contracts.errors import InvalidSettingsError
from contracts.settings import KafkaSettings, read

__all__ = ["InvalidSettingsError", "KafkaSettings", "read"]
