"""Kafka's settings for the connector: the project uses librdkafka's names, Spark's client Java's."""

from collections.abc import Mapping

from contracts.model.topics import READ_COMMITTED
from spark_app.errors import UnsupportedOptionError

SAME = ("security.protocol", "client.id", "client.rack", "ssl.endpoint.identification.algorithm")
"""Options with one name in both clients. The others have no counterpart, or a job must not change them."""
LOGINS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

CONSUMER = {f"kafka.{name}": value for name, value in READ_COMMITTED.items()}
"""Further options of the sources' consumers."""
PRODUCER = {
    # Snapshots of one device are much alike, and the broker's work goes by requests and bytes: a third more records
    # a second when it shares the machine, for at most a millisecond of latency. While one batch waits behind another,
    # each further record wakes the sender, so a batch is large; the memory is for one in each of many partitions.
    "kafka.linger.ms": "1",
    "kafka.batch.size": "524288",
    "kafka.buffer.memory": "134217728",
    "kafka.compression.type": "lz4",
}
"""Further options of the sink's producer."""


def connector(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of Spark's Kafka source and sink for these of librdkafka. Raises UnsupportedOptionError."""
    left = dict(options)
    java = {"bootstrap.servers": left.pop("bootstrap.servers")}
    java |= {name: left.pop(name) for name in SAME if name in left}
    mechanism = left.pop("sasl.mechanism", left.pop("sasl.mechanisms", None))
    if mechanism is not None:
        user, password = left.pop("sasl.username", None), left.pop("sasl.password", None)
        if mechanism not in LOGINS or user is None or password is None:
            raise UnsupportedOptionError("sasl.mechanism", f"{', '.join(LOGINS)} with sasl.username and sasl.password")
        login = f"username={_quoted(user)} password={_quoted(password)}"
        java |= {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{LOGINS[mechanism]} required {login};"}
    if "ssl.ca.location" in left:
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": left.pop("ssl.ca.location")}
    for name in left:
        raise UnsupportedOptionError(
            name, "security.protocol, sasl.mechanism, sasl.username, sasl.password, ssl.ca.location"
        )
    return {f"kafka.{name}": value for name, value in java.items()}


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
