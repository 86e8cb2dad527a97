"""What is wrong with the certificate of a broker."""

from __future__ import annotations

import ssl
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest
import trustme

from services.runtime.kafka.certificates import certificate_problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AUTHORITY = trustme.CA()
ENDED = datetime.now(UTC) - timedelta(days=1)
BEGINS = datetime.now(UTC) + timedelta(days=1)
RIGHT = AUTHORITY.issue_cert("127.0.0.1")


class Handshake(BaseRequestHandler):
    """Does nothing but the handshake of TLS."""

    def handle(self) -> None:
        if isinstance(self.request, ssl.SSLSocket):
            with suppress(OSError):  # the client does not accept the certificate
                self.request.do_handshake()


@contextmanager
def serving(certificate: trustme.LeafCert | None) -> Iterator[str]:
    """Serve TLS with a certificate, or no TLS; gives the address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with ThreadingTCPServer(("127.0.0.1", 0), Handshake) as server:
        if certificate is not None:
            certificate.configure_cert(context)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(path)
    return path


@pytest.mark.parametrize(
    ("certificate", "problem"),
    [
        (RIGHT, None),
        (AUTHORITY.issue_cert("127.0.0.1", not_after=ENDED), "certificate has expired: renew it"),
        (AUTHORITY.issue_cert("127.0.0.1", not_before=BEGINS), "certificate is not yet valid: renew it"),
        (AUTHORITY.issue_cert("kafka.test"), "is not valid for '127.0.0.1': issue it for this name"),
        (AUTHORITY.issue_cert("127.0.0.2"), "is not valid for '127.0.0.1': issue it for this name"),
        (trustme.CA().issue_cert("127.0.0.1"), "set ssl.ca.location in STATELOOP_KAFKA_OPTIONS"),
        (None, None),
    ],
)
def test_the_problem_names_the_broker_the_reason_and_the_remedy(
    trusted: Path, certificate: trustme.LeafCert | None, problem: str | None
) -> None:
    with serving(certificate) as address, serving(RIGHT) as right:
        servers = {"bootstrap.servers": f"{right}, {address}"}
        for authority in ({"ssl.ca.location": str(trusted)}, {"ssl.ca.pem": trusted.read_text()}):
            found = certificate_problem(servers | authority)
            assert (found is None) == (problem is None)
            assert problem is None or (problem in (found or "") and address in (found or ""))


def test_a_client_that_compares_no_names_has_no_problem_with_another_name(trusted: Path) -> None:
    options = {"ssl.ca.location": str(trusted), "ssl.endpoint.identification.algorithm": "none"}
    with serving(AUTHORITY.issue_cert("kafka.test")) as address:
        assert certificate_problem({"bootstrap.servers": address} | options) is None


def test_a_client_that_checks_no_certificate_has_no_problem_with_one() -> None:
    options = {"enable.ssl.certificate.verification": "false"}
    with serving(trustme.CA().issue_cert("127.0.0.1")) as address:
        assert certificate_problem({"bootstrap.servers": address} | options) is None


@pytest.mark.parametrize("authority", [{"ssl.ca.location": "/nowhere"}, {"ssl.ca.pem": "no certificate"}])
def test_the_client_reports_what_cannot_be_checked(authority: dict[str, str]) -> None:
    assert certificate_problem({"bootstrap.servers": "127.0.0.1:1"} | authority) is None
