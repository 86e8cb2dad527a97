"""Certificates of one authority for the listeners of a broker and for its clients: right, expired, of another host."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

if TYPE_CHECKING:
    from pathlib import Path


class Certificates:
    """Writes PEM files into a folder, which has one authority. Keys are PKCS #8, which librdkafka and Java read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.authority, key = folder / "ca.pem", folder / "ca.key"
        if key.exists():
            self._authority = trustme.CA.from_pem(self.authority.read_bytes(), key.read_bytes())
            return
        self._authority = trustme.CA()
        self._authority.cert_pem.write_to_path(self.authority)
        self._authority.private_key_pem.write_to_path(key)

    def server(self, name: str, host: str = "127.0.0.1", *, expired: bool = False) -> Path:
        """Return the file of a key with its certificate, as a broker reads it."""
        ended = datetime.now(UTC) - timedelta(days=1) if expired else None
        begun = datetime.now(UTC) - timedelta(days=2) if expired else None
        issued = self._authority.issue_cert(host, not_before=begun, not_after=ended)
        path = self._folder / f"{name}.pem"
        path.write_bytes(_key(issued) + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        return path

    def client(self, name: str, password: str) -> None:
        """Write a certificate of this name, and its key: encrypted, and for Java not encrypted."""
        issued = self._authority.issue_cert(f"{name}.test", common_name=name)
        (self._folder / f"{name}.crt").write_bytes(issued.cert_chain_pems[0].bytes())
        (self._folder / f"{name}.key").write_bytes(_key(issued, password))
        (self._folder / f"{name}.plain.key").write_bytes(_key(issued))


def _key(issued: trustme.LeafCert, password: str = "") -> bytes:
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
