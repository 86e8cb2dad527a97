"""Spark's logs in a checkpoint."""

from spark_app.checkpoint.commit_log import moved, parsed

TWO_SOURCES = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1795377000000,"conf":{"spark.sql.shuffle.partitions":"2"}}
{"events":{"1":52,"0":48}}
{"feedback":{"0":7,"1":0}}"""


def test_positions_are_read_from_sparks_offset_log() -> None:
    assert parsed(TWO_SOURCES) == {
        ("events", 0): 48,
        ("events", 1): 52,
        ("feedback", 0): 7,
        ("feedback", 1): 0,
    }
    assert parsed("v1\n{}\n-\n" + '{"feedback":{"0":7}}') == {("feedback", 0): 7}


def test_moved_positions_replace_those_of_each_source_and_nothing_else() -> None:
    twice = TWO_SOURCES + '\n{"events":{"1":52,"0":48}}\n-'
    positions = {("events", 0): 3, ("events", 1): 0, ("feedback", 0): 1, ("feedback", 1): 9}
    content = moved(twice, positions)
    assert parsed(content) == positions
    assert content.splitlines()[:2] == twice.splitlines()[:2]
    assert content.splitlines()[2] == content.splitlines()[4]
    assert content.splitlines()[5] == "-"
