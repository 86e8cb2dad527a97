"""The parts of the job that sampled stacks belong to."""

import pytest

from bench.profile.parts import REST, part, shares

TASK = "[Executor task launch worker for task 0.0 in stage 1.0 (TID 4) tid=7];java/lang/Thread.run;"


@pytest.mark.parametrize(
    ("stack", "name"),
    [
        ("[C2 CompilerThre tid=1];start_thread;Compile::Optimize()", "compiling Java code, once per start"),
        (f"{TASK}org/apache/spark/ResultTask.run;org/rocksdb/RocksDB.get;rocksdb_get", "state: RocksDB's reads"),
        (f"{TASK}org/apache/spark/EvictionIterator.next;org/rocksdb/RocksDB.get", "state: expiry's look at every key"),
        (
            f"{TASK}org/apache/spark/sql/StructsToJsonEvaluator.evaluate;x/Iso8601TimestampFormatter.format",
            "writing JSON: times",
        ),
        (f"{TASK}org/apache/spark/sql/StructsToJsonEvaluator.evaluate;x/write", "writing JSON: the rest"),
        (f"{TASK}org/apache/spark/scheduler/ShuffleMapTask.runTask", "reading: checking, projecting, shuffle's writer"),
        (f"{TASK}org/apache/spark/scheduler/ResultTask.runTask", "the rest of the second stage"),
        ("[an unknown thread tid=3];x", REST),
    ],
)
def test_a_stack_belongs_to_the_first_part_that_fits(stack: str, name: str) -> None:
    assert part(stack) == name


def test_shares_are_of_all_samples_and_the_largest_comes_first() -> None:
    found = shares(["[rocksdb:low tid=1];a 1", f"{TASK}x/KafkaConsumer.poll 3"])
    assert found == {"reading: Kafka's consumer": 0.75, "RocksDB's own threads": 0.25}


def test_no_samples_are_no_shares() -> None:
    assert shares([]) == {}
