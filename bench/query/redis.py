"""Redis with a feeder, as people put it behind a topic: `python -m bench.query.redis BOOT PORT FOLDER`.

The feeder reads the topic from where it was and sets each record's key; where it was is in Redis, too, set in the same
transaction. Redis appends what it does to a file, synced once a second, so that it survives a restart.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from confluent_kafka import Consumer, Message, TopicPartition

from bench.harness.topics import PARTITIONS, consumer_settings
from bench.query.records import TOPIC
from bench.query.store_clients import RedisStoreClient, encoded

MANY = 1_000
WAIT_S = 0.05
PAUSE_S = 0.02


def server(port: str, folder: str) -> list[str]:
    """Redis's own command."""
    durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"]
    return ["redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", folder, *durable]


def transaction(messages: Sequence[Message]) -> bytes:
    """Sets of all these records, and of where each partition is then, as one."""
    positions = {message.partition() or 0: (message.offset() or 0) + 1 for message in messages}
    sets = [encoded(b"SET", message.key() or b"", message.value() or b"") for message in messages]
    sets += [encoded(b"SET", b"position:%d" % partition, b"%d" % at) for partition, at in positions.items()]
    return b"".join([encoded(b"MULTI"), *sets, encoded(b"EXEC")])


def feed(boot: str, store_client: RedisStoreClient) -> None:
    """Follow the topic until the process is stopped."""
    consumer = Consumer(consumer_settings(boot))
    consumer.assign([TopicPartition(TOPIC, number, _position(store_client, number)) for number in range(PARTITIONS)])
    while True:
        first = consumer.poll(WAIT_S)
        if first is None or first.error():
            continue
        messages = [first, *(message for message in consumer.consume(MANY - 1, 0) if not message.error())]
        store_client.apply(transaction(messages), len(messages) + len({message.partition() for message in messages}))


def _position(store_client: RedisStoreClient, partition: int) -> int:
    (position,) = store_client.command(b"GET", b"position:%d" % partition)
    return int(position or 0)


def _await(store_client: RedisStoreClient) -> None:
    """It refuses commands while it reads its file."""
    while True:
        with suppress(OSError):
            store_client.command(b"GET", b"ready")
            return
        time.sleep(PAUSE_S)


def main(boot: str, port: str, folder: str) -> None:
    """Run both, until one ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with subprocess.Popen(server(port, folder)) as running:
        try:
            store_client = RedisStoreClient(int(port))
            _await(store_client)
            feed(boot, store_client)
        finally:
            running.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
