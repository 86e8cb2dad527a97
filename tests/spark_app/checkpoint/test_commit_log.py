"""Spark's logs in a checkpoint."""

from spark_app.checkpoint.commit_log import parsed

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
