"""The bare Spark job: `python -m bench.bare.job`. It is what a good reader of Spark's manual writes in an hour.

It trusts its input: nothing is validated, no clock is checked, there are no dead letters, duplicates are not removed.
It is not tuned, but for the shuffle's wait of 1 ms, without which its latency cannot be compared with anything.
The environment has the places: BOOT (broker), CKPT (checkpoint), JARS (the Kafka connector). BATCH: 5 minutes if unset.
"""

import os
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that PySpark's users know

EVENT = """device_id string, event_id string, first_seen timestamp, ts timestamp, attrs map<string,string>,
    temperature double"""
FEEDBACK = "device_id string, first_seen timestamp, ts timestamp, name string, result string"
STATE_STORE = "spark.sql.streaming.stateStore"
CONF: dict[str, bool | float | int | str | None] = {
    "spark.driver.memory": "3g",
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.realTimeMode.asyncProgressTrackingByDefault.enabled": "false",
    "spark.sql.streaming.statefulOperator.incrementalCleanupFactor": "2",
    f"{STATE_STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    f"{STATE_STORE}.rocksdb.trackTotalNumberOfRows": "false",
    "spark.ui.enabled": "false",
}
TASKS = 8
"""All at once: two partitions of each of two sources and of the shuffle, and two to spare."""


def session(jars: Path) -> SparkSession:
    """The session, with the connector's jars on its class path."""
    paths = sorted(str(jar) for jar in jars.glob("*.jar"))
    builder = SparkSession.Builder().master(f"local[{TASKS}]").config(map=CONF)
    return (
        builder.config("spark.jars", ",".join(paths)).config("spark.driver.extraClassPath", ":".join(paths))
    ).getOrCreate()


def read(spark: SparkSession, kafka: str, topic: str, schema: str) -> DataFrame:
    """A topic's records, decoded, with the time that the broker has them under."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka).option("subscribe", topic)
    records = source.option("startingOffsets", "earliest").load()
    return records.select(F.from_json(F.col("value").cast("string"), schema).alias("e"), "timestamp").select(
        "e.*", "timestamp"
    )


def deltas(events: DataFrame, feedback: DataFrame) -> DataFrame:
    """Both topics' records as rows of the same columns."""
    nothing = F.lit(None).cast("string")
    identity = ("device_id", "first_seen", "ts", "timestamp")
    ours = events.select(
        *identity, F.lit(1).alias("event"), "temperature", nothing.alias("geo"), nothing.alias("weather")
    )
    answers = feedback.select(
        *identity,
        F.lit(None).cast("int").alias("event"),
        F.lit(None).cast("double").alias("temperature"),
        F.when(F.col("name") == "geo", F.col("result")).alias("geo"),
        F.when(F.col("name") == "weather", F.col("result")).alias("weather"),
    )
    return ours.unionByName(answers).withWatermark("first_seen", "1 hour")


def states(rows: DataFrame) -> DataFrame:
    """The state of each device."""
    latest = [
        F.max_by(name, F.when(F.col(name).isNotNull(), F.col("ts"))).alias(alias)
        for name, alias in (("temperature", "t_last"), ("geo", "geo"), ("weather", "weather"))
    ]
    return rows.groupBy("device_id", "first_seen").agg(
        F.count("event").alias("events"),
        F.max("ts").alias("last_ts"),
        F.max("temperature").alias("t_max"),
        F.avg("temperature").alias("t_avg"),
        *latest,
        F.max("timestamp").alias("as_of"),
    )


def main() -> None:
    """Run until killed."""
    kafka, batch = os.environ["BOOT"], os.environ.get("BATCH", "5 minutes")
    spark = session(Path(os.environ["JARS"]))
    spark.sparkContext.setLogLevel("WARN")
    rows = deltas(read(spark, kafka, "events", EVENT), read(spark, kafka, "feedback", FEEDBACK))
    snapshots = states(rows).select(F.col("device_id").alias("key"), F.to_json(F.struct("*")).alias("value"))
    sink = snapshots.writeStream.format("kafka").option("kafka.bootstrap.servers", kafka).option("topic", "snapshots")
    query = sink.option("checkpointLocation", os.environ["CKPT"]).outputMode("update")
    query.trigger(realTime=batch).start().awaitTermination()  # type: ignore[call-overload]  # newer than its stubs


if __name__ == "__main__":
    main()
