from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tools.broker.properties import cluster_id, escaped, server_properties

SESSION = timedelta(seconds=3)


def parsed(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_the_broker_listens_on_this_machine_only() -> None:
    properties = parsed(server_properties(Path("/data/log"), 9092, 9093, SESSION))
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:9093"


def test_topics_are_made_on_purpose_only() -> None:
    properties = parsed(server_properties(Path("/data/log"), 9092, 9093, SESSION))
    assert properties["auto.create.topics.enable"] == "false"
    assert properties["num.partitions"] == "1"


def test_nothing_asks_for_a_second_broker() -> None:
    properties = parsed(server_properties(Path("/data/log"), 9092, 9093, SESSION))
    replicas = {key: value for key, value in properties.items() if key.endswith(("replication.factor", "min.isr"))}
    assert len(replicas) == 6
    assert set(replicas.values()) == {"1"}


def test_the_session_is_as_long_as_it_is_set() -> None:
    properties = parsed(server_properties(Path("/data/log"), 9092, 9093, timedelta(seconds=1.5)))
    assert properties["broker.session.timeout.ms"] == "1500"


def test_data_is_in_its_folder() -> None:
    assert parsed(server_properties(Path("/my data/log"), 9092, 9093, SESSION))["log.dirs"] == "/my data/log"


@pytest.mark.parametrize(
    ("value", "written"),
    [("a\\b", "a\\\\b"), ("a\nb", "a\\nb"), ("Gerät", "Ger\\u00e4t"), ("\U0001f6eb", "\\ud83d\\udeeb")],
)
def test_values_are_written_as_java_reads_them(value: str, written: str) -> None:
    assert escaped(value) == written


def test_a_cluster_id_is_22_characters_of_base64() -> None:
    assert cluster_id(UUID(int=0)) == "A" * 22
    assert cluster_id(UUID(int=2**128 - 1)) == "_" * 21 + "w"


@given(st.uuids())
def test_cluster_ids_differ_as_their_uuids_do(uuid: UUID) -> None:
    assert len(cluster_id(uuid)) == 22
    assert cluster_id(uuid) != cluster_id(UUID(int=uuid.int ^ 1))
