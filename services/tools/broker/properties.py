"""The text of Kafka's server.properties, and the id of a new cluster."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

HOST = "127.0.0.1"


def server_properties(log_dir: Path, port: int, controller_port: int, session: timedelta) -> str:
    """Return the properties of a one-process broker on this machine only, its log in `log_dir`."""
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": escaped(str(log_dir)),
        "num.partitions": "1",
        "auto.create.topics.enable": "false",
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        # Where workers use group.protocol=consumer: partitions move in seconds, as with Kafka's older protocol.
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.session.timeout.ms": "6000",
        "group.consumer.session.timeout.ms": "10000",
        # After a kill -9 the new process waits until the session of the old one is over: 12 s with Kafka's own 9 s.
        "broker.session.timeout.ms": str(session // timedelta(milliseconds=1)),
        "broker.heartbeat.interval.ms": "500",
    }
    return "".join(f"{key}={value}\n" for key, value in properties.items())


def escaped(value: str) -> str:
    """Escape a value as java.util.Properties reads it."""
    ascii_only = "".join(
        char if char.isascii() else "".join(f"\\u{unit:04x}" for unit in _utf16(char))
        for char in value.replace("\\", "\\\\")
    )
    return ascii_only.replace("\n", "\\n")


def cluster_id(uuid: UUID) -> str:
    """Return a UUID as Kafka writes it: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(uuid.bytes).rstrip(b"=").decode("ascii")


def _utf16(char: str) -> list[int]:
    encoded = char.encode("utf-16-be")
    return [int.from_bytes(encoded[at : at + 2], "big") for at in range(0, len(encoded), 2)]
