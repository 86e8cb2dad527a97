"""From samples to shares: which part of the job a stack belongs to."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Part(NamedTuple):
    """A part of the job: the stacks of the threads whose name fits, with a frame that fits."""

    name: str
    thread: str
    frame: str = ""


TASK = r"^\[Executor task"
PARTS = (
    Part("compiling Java code, once per start", r"^\[C[12] CompilerThre"),
    Part("collection of garbage", r"^\[(GC |VM Thread|G1 )"),
    Part("Kafka's producer's own thread", r"^\[kafka-producer-network-thread"),
    Part("shuffle's threads", r"^\[(streaming-shuffle|time-based-flush)"),
    Part("RocksDB's own threads", r"^\[rocksdb:"),
    Part("state: expiry's look at every key", TASK, r"EvictionIterator"),
    Part("state: RocksDB's reads", TASK, r"RocksDB\.(get|multiGet)|RocksDB\$\$Lambda.*get"),
    Part("state: RocksDB's writes", TASK, r"rocksdb/RocksDB\.(put|delete|merge|write)"),
    Part("state: the changelog", TASK, r"StateStoreChangelogWriter"),
    Part("state: loading, commit and snapshots", TASK, r"state/RocksDB\.(load|commit)|RocksDBFileManager"),
    Part("writing JSON: times", TASK, r"(StructsToJson|JacksonGenerator).*TimestampFormatter"),
    Part("writing JSON: the rest", TASK, r"StructsToJson|JacksonGenerator"),
    Part("reading: JSON", TASK, r"JsonToStructsEvaluator|JacksonParser"),
    Part("reading: times", TASK, r"java/util/regex|stringToTimestamp|RLike"),
    Part("sink: handing to Kafka's producer", TASK, r"KafkaRowWriter|KafkaProducer\.(send|doSend)"),
    Part("reading: Kafka's consumer", TASK, r"KafkaDataConsumer|KafkaConsumer\.poll|nextWithTimeout"),
    Part("state: merge and cache", TASK, r"StatefulStreamlineAggregationProcessor"),
    Part("reading: checking, projecting, shuffle's writer", TASK, r"ShuffleMapTask"),
    Part("the rest of the second stage", TASK),
    Part("the driver: planning, code generation, start", r"stream execution thread|^\[Thread-|^\[main|dag-scheduler"),
)
"""The first that fits counts."""
REST = "all else"


def shares(collapsed: Iterable[str]) -> dict[str, float]:
    """Each part's share of all samples, from lines of `frame;frame;… count`, the largest first."""
    counts: Counter[str] = Counter()
    for line in collapsed:
        stack, _, count = line.rpartition(" ")
        counts[part(stack)] += int(count)
    total = counts.total()
    return {name: count / total for name, count in counts.most_common()} if total else {}


def part(stack: str) -> str:
    """The name of the part that a stack belongs to: its first frame is the thread's name in brackets."""
    thread, _, frames = stack.partition(";")
    for one in PARTS:
        if re.search(one.thread, thread) and re.search(one.frame, frames):
            return one.name
    return REST
