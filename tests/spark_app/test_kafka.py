"""The options of Spark's Kafka client."""

from __future__ import annotations

import pytest

from spark_app.errors import UnsupportedOptionError
from spark_app.kafka import connector

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


@pytest.mark.parametrize(
    "options",
    [
        {"ssl.key.location": "/etc/key.pem"},
        {"sasl.mechanism": "OAUTHBEARER", "sasl.username": "job", "sasl.password": "x"},
        {"sasl.mechanism": "PLAIN", "sasl.username": "job"},
        {"sasl.password": "x"},
    ],
)
def test_an_option_without_a_counterpart_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedOptionError, match="STATELOOP_KAFKA_OPTIONS"):
        connector(BROKER | options)
