import base64
import hmac
from collections.abc import Mapping


def is_signed(secret: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()
    return hmac.compare_digest(expected, headers["webhook-signature"])
