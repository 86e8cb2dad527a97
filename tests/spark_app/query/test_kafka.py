"""The options of Spark's Kafka client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from spark_app.errors import UnsupportedOptionError
from spark_app.query.kafka import connector, ignored

if TYPE_CHECKING:
    from pathlib import Path

BROKER = {"bootstrap.servers": "broker:9092"}


def test_an_address_is_enough() -> None:
    assert connector(BROKER) == {"kafka.bootstrap.servers": "broker:9092"}


def test_a_login_is_worded_as_java_does() -> None:
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "job",
        "sasl.password": 'a"b\\c',
        "ssl.ca.location": "/etc/ca.pem",
    }
    login = "org.apache.kafka.common.security.scram.ScramLoginModule"
    assert connector(BROKER | options) == {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{login} required username="job" password="a\\"b\\\\c";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "/etc/ca.pem",
    }


def test_a_certificate_and_its_key_are_passed_with_their_content(tmp_path: Path) -> None:
    key, certificate = tmp_path / "client.key", tmp_path / "client.crt"
    key.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    certificate.write_text("-----BEGIN CERTIFICATE-----\n")
    options = {"ssl.key.location": str(key), "ssl.certificate.location": str(certificate), "ssl.key.password": "x"}
    expected = {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.key": key.read_text(),
        "kafka.ssl.keystore.certificate.chain": certificate.read_text(),
        "kafka.ssl.key.password": "x",
    }
    assert connector(BROKER | options) == expected
    pem = {"ssl.key.pem": key.read_text(), "ssl.certificate.pem": certificate.read_text(), "ssl.key.password": "x"}
    assert connector(BROKER | pem | {"ssl.ca.pem": "ca"}) == expected | {
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "ca",
    }


def test_a_key_store_is_passed_as_it_is() -> None:
    assert connector(BROKER | {"ssl.keystore.location": "/client.p12", "ssl.keystore.password": "x"}) == {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.ssl.keystore.type": "PKCS12",
        "kafka.ssl.keystore.location": "/client.p12",
        "kafka.ssl.keystore.password": "x",
    }


def test_a_token_is_requested_from_the_endpoint() -> None:
    options = {
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "job",
        "sasl.oauthbearer.client.secret": "x",
        "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1",
    }
    package = "org.apache.kafka.common.security.oauthbearer"
    login = 'clientId="job" clientSecret="x" scope="kafka" extension_logicalCluster="lkc-1"'
    assert connector(BROKER | options) == {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.jaas.config": f"{package}.OAuthBearerLoginModule required {login};",
        "kafka.sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
        "kafka.sasl.login.callback.handler.class": f"{package}.OAuthBearerLoginCallbackHandler",
    }


def test_kerberos_uses_the_key_tab() -> None:
    options = {
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal": "job@EXAMPLE",
        "sasl.kerberos.keytab": "/job.keytab",
        "sasl.kerberos.kinit.cmd": "kinit",
    }
    module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
    assert connector(BROKER | options) == {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.sasl.kerberos.service.name": "kafka",
        "kafka.sasl.mechanism": "GSSAPI",
        "kafka.sasl.jaas.config": f'{module} keyTab="/job.keytab" principal="job@EXAMPLE";',
    }
    assert ignored(BROKER | options) == ["sasl.kerberos.kinit.cmd"]


def test_options_that_tune_the_client_of_the_workers_are_left_out_and_named() -> None:
    options = BROKER | {"session.timeout.ms": "6000", "client.id": "x", "socket.keepalive.enable": "true"}
    assert connector(options) == {"kafka.bootstrap.servers": "broker:9092", "kafka.client.id": "x"}
    assert ignored(options) == ["session.timeout.ms", "socket.keepalive.enable"]


def test_an_encrypted_key_that_java_cannot_read_is_refused_with_the_remedy() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")).decode()
    options = {"ssl.key.pem": written, "ssl.certificate.pem": "x", "ssl.key.password": "secret"}
    with pytest.raises(UnsupportedOptionError, match="key without a password: openssl pkey"):
        connector(BROKER | options)
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    assert connector(BROKER | options | {"ssl.key.pem": plain})["kafka.ssl.keystore.key"] == plain


@pytest.mark.parametrize(
    "options",
    [
        {"ssl.key.location": "/etc/key.pem"},
        {"ssl.key.pem": "-----BEGIN PRIVATE KEY-----"},
        {"ssl.key.pem": "-----BEGIN RSA PRIVATE KEY-----", "ssl.certificate.pem": "x"},
        {"enable.ssl.certificate.verification": "false"},
        {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc"},
        {"sasl.mechanism": "GSSAPI", "sasl.kerberos.principal": "job"},
        {"sasl.mechanism": "OAUTHBEARER", "sasl.username": "job", "sasl.password": "x"},
        {"sasl.mechanism": "PLAIN", "sasl.username": "job"},
        {"sasl.password": "x"},
    ],
)
def test_an_option_without_a_counterpart_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedOptionError, match="STATELOOP_KAFKA_OPTIONS"):
        connector(BROKER | options)
