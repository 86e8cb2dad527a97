"""What the settings of all parts have in common: how they are read and refused, and where the brokers are."""

import re
from datetime import timedelta
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from contracts.errors import SettingsRefused

Model = TypeVar("Model", bound=BaseSettings)


def _seconds(value: object) -> object:
    """A plain number in the environment is a text, which pydantic does not take for seconds."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


Duration = Annotated[timedelta, BeforeValidator(_seconds), Field(ge=timedelta(0))]
"""A number of seconds, or ISO 8601."""


class KafkaSettings(BaseSettings):
    """Where the brokers are, and how a part logs in there."""

    model_config = SettingsConfigDict(env_prefix="STATELOOP_", frozen=True, extra="ignore")

    kafka: str = "127.0.0.1:9092"
    """The brokers, as host:port, separated by commas."""
    kafka_options: dict[str, SecretStr] = {}
    """Further settings of librdkafka (security, for one), for every client that the part makes."""

    def client(self) -> dict[str, str]:
        """What all these clients have in common. It holds the secrets: not to be printed."""
        options = {name: secret.get_secret_value() for name, secret in self.kafka_options.items()}
        return {"bootstrap.servers": self.kafka, **options}


def read(model: type[Model]) -> Model:
    """The settings, as the environment has them. Raises SettingsRefused."""
    prefix = model.model_config.get("env_prefix", "")
    try:
        return model()
    except ValidationError as error:
        problems = [(_field(one["loc"]), one["msg"]) for one in error.errors()]
    except SettingsError as error:  # a value that is no JSON, where JSON is wanted
        named = re.search(r'field "(\w+)"', str(error))
        problems = [(named[1] if named else "", "write it as JSON")]
    raise SettingsRefused([(f"{prefix}{field}".upper(), problem) for field, problem in problems])


def _field(location: tuple[int | str, ...]) -> str:
    """A check of several fields together has no place of its own."""
    return str(location[0]) if location else "*"
