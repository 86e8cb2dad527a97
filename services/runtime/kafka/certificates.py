"""Finds why a broker's certificate is refused, which librdkafka does not report."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_S = 2.0
IDENTIFICATION = "ssl.endpoint.identification.algorithm"
VERIFICATION = "enable.ssl.certificate.verification"
RENEW = "renew it on the broker"
RENAME = "issue it for this name, or set STATELOOP_KAFKA to a name that it has"
TRUST = "set ssl.ca.location in STATELOOP_KAFKA_OPTIONS to the certificate authority that issued it"
REMEDIES = {9: RENEW, 10: RENEW, 62: RENAME, 64: RENAME}
"""By the codes of OpenSSL: not valid yet, expired, of another name, of another address. Otherwise it is not trusted."""


def certificate_problem(options: Mapping[str, str]) -> str | None:
    """Return what is wrong with the certificate of the first broker that has a wrong one, and the remedy."""
    context = _context(options)
    for address in options["bootstrap.servers"].split(","):
        if context is not None and (problem := _problem(address.strip(), context)):
            return f"the certificate of {address.strip()} is refused: {problem}"
    return None


def _context(options: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the checks that the client makes; None if it makes none, or would refuse these options by itself."""
    if options.get(VERIFICATION) == "false":
        return None
    try:
        context = ssl.create_default_context(cafile=options.get("ssl.ca.location"), cadata=options.get("ssl.ca.pem"))
    except (OSError, ValueError):
        return None
    context.check_hostname = options.get(IDENTIFICATION, "https") == "https"
    return context


def _problem(address: str, context: ssl.SSLContext) -> str | None:
    place = urlsplit(f"//{address}")
    with suppress(OSError, ValueError):  # no answer, or no TLS: the client reports it
        try:
            with socket.create_connection((place.hostname or "", place.port or 9092), ANSWER_S) as plain:
                context.wrap_socket(plain, server_hostname=place.hostname).close()
        except ssl.SSLCertVerificationError as error:
            return f"{error.verify_message.rstrip('.')}: {REMEDIES.get(error.verify_code, TRUST)}"
    return None
