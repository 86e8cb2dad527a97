"""Signs the deliveries of a webhook, as Standard Webhooks specifies it (HMAC-SHA256, https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import TYPE_CHECKING

from contracts.settings import read_secret
from services.enrichment.errors import WebhookSecretError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pydantic import SecretStr

PREFIX = "whsec_"
SHORTEST = 24
"""In bytes: the specification's minimum."""


class Signer:
    """Signs with the secret of one API: its key in base64, which may begin with `whsec_`, or `file:/path`."""

    def __init__(self, api: str, secret: SecretStr, now: Callable[[], datetime]) -> None:
        self._key = _key(api, secret.get_secret_value())
        self._now = now

    def headers(self, key: str, content: bytes) -> dict[str, str]:
        """Return the headers of one attempt. The receiver rejects an old timestamp, so each attempt has its own."""
        timestamp = str(int(self._now().timestamp()))
        signed = hmac.digest(self._key, f"{key}.{timestamp}.".encode() + content, "sha256")
        signature = f"v1,{base64.b64encode(signed).decode()}"
        return {"webhook-id": key, "webhook-timestamp": timestamp, "webhook-signature": signature}


def _key(api: str, configured: str) -> bytes:
    try:
        key = base64.b64decode(read_secret(configured).removeprefix(PREFIX), validate=True)
    except (OSError, UnicodeDecodeError) as error:
        raise WebhookSecretError(api, f"its file cannot be read ({type(error).__name__})") from error
    except binascii.Error as error:
        raise WebhookSecretError(api, "it is not base64") from error
    if len(key) < SHORTEST:
        raise WebhookSecretError(api, f"it has less than {SHORTEST} bytes")
    return key
