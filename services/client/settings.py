"""The settings of the command, from environment variables with the prefix STATELOOP_."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from contracts.settings import EnvironmentSettings, read_secret_file
from services.client.errors import TokenFileError


class ClientSettings(EnvironmentSettings):
    """The address of the query service, and the token."""

    url: str = "http://127.0.0.1:8090"
    """Any instance; several, separated by commas."""
    token: SecretStr | None = None
    """The token, or STATELOOP_TOKEN_FILE. An argument would be seen by everybody on the machine."""
    token_file: Path | None = None

    def secret(self, file: Path | None = None) -> str | None:
        """Return the token of this file, of the settings' file, or of the environment. Raises TokenFileError."""
        path = file or self.token_file
        if path is None:
            return self.token.get_secret_value() if self.token else None
        try:
            text = read_secret_file(path)
        except (OSError, UnicodeError) as error:
            raise TokenFileError(
                str(path), error.strerror or "" if isinstance(error, OSError) else "no UTF-8"
            ) from error
        if not text or "\n" in text:
            raise TokenFileError(str(path), "more than one line" if text else "it is empty")
        return text
