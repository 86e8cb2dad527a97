"""The base of all settings: how they are read and refused, and what several parts have."""

import json
import os
import re
from datetime import timedelta
from typing import Annotated, TypeVar

from pydantic import Field, SecretStr, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from contracts.errors import InvalidSettingsError
from contracts.settings.variables import PREFIX, unknown_variables

Model = TypeVar("Model", bound=BaseSettings)


def _duration(value: object, validate: ValidatorFunctionWrapHandler) -> timedelta:
    """Take a plain number for seconds: in the environment it is a text, which pydantic takes for no duration."""
    try:
        duration: timedelta = validate(_seconds(value))
    except ValidationError as error:
        raise ValueError("write a number of seconds, such as 30, or ISO 8601, such as PT30S") from error
    return duration


def _seconds(value: object) -> object:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


Duration = Annotated[timedelta, WrapValidator(_duration), Field(ge=timedelta(0))]
"""A number of seconds, or ISO 8601."""


class EnvironmentSettings(BaseSettings):
    """Settings from environment variables with the prefix STATELOOP_."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")


class KafkaSettings(EnvironmentSettings):
    """The address of the brokers, and the options of the clients, such as a login."""

    kafka: str = "127.0.0.1:9092"
    """The brokers, as host:port, separated by commas."""
    kafka_options: dict[str, SecretStr] = Field(default={}, examples=[{"security.protocol": "SSL"}])
    """Further settings of librdkafka (security, for one), for every client that the part makes."""

    def client(self) -> dict[str, str]:
        """Return the options of all Kafka clients. They contain secrets: do not print them."""
        options = {name: secret.get_secret_value() for name, secret in self.kafka_options.items()}
        return {"bootstrap.servers": self.kafka, **options}


class ApplicationSettings(KafkaSettings):
    """The application that a service or command works for."""

    application: str
    """The application, or the suite of applications, as package.module:name."""


class EndpointSettings(ApplicationSettings):
    """The endpoints of a process, for monitors."""

    http_host: str = "127.0.0.1"
    """The address of /healthz, /readyz and /metrics; in a container, 0.0.0.0."""
    http_port: int | None = Field(default=None, ge=0, le=65535)
    """Their port; 0 selects a free one, which the log shows. Unset, they are not served."""


def read(model: type[Model]) -> Model:
    """Return the settings of the environment. Raises InvalidSettingsError, also for a variable that no part reads."""
    prefix = model.model_config.get("env_prefix", "")
    unknown = unknown_variables(os.environ)
    try:
        settings = model()
    except ValidationError as error:
        problems = [(_field(detail["loc"]), _problem(detail["loc"], detail["msg"])) for detail in error.errors()]
    except SettingsError as error:  # a value that is no JSON, where JSON is wanted
        named = re.search(r'field "(\w+)"', str(error))
        problems = [(field, _json_wanted(model, field)) for field in [named[1] if named else ""]]
    else:
        if not unknown:
            return settings
        problems = []
    raise InvalidSettingsError([*unknown, *((f"{prefix}{field}".upper(), problem) for field, problem in problems)])


def _json_wanted(model: type[BaseSettings], field: str) -> str:
    """Return what to write for a field that takes JSON, with the first example that the field declares."""
    examples = model.model_fields[field].examples if field in model.model_fields else None
    return f"write it as JSON, such as '{json.dumps(examples[0])}'" if examples else "write it as JSON"


def _field(location: tuple[int | str, ...]) -> str:
    """Return the name of a problem's field; `*` for a check of several fields."""
    return str(location[0]) if location else "*"


def _problem(location: tuple[int | str, ...], message: str) -> str:
    """Return a problem, with the name or the number of the value inside its field that has it."""
    inside = ".".join(map(str, location[1:]))
    return f"{inside}: {message}" if inside else message
