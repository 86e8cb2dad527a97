"""Replays the readings: `python -m examples.weather.replay --from 2013-01-01 --days 365 --speed 3600`.

It begins anew each time: the job counts a reading once. SIGINT and SIGTERM stop it.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from threading import Event as Flag

import orjson
from confluent_kafka import Producer

from examples.flights.replay.pace import Pace
from examples.flights.replay.sender import connect
from examples.weather.application import app
from examples.weather.readings import Reading, readings
from stateloop import StateloopError
from stateloop.settings import KafkaSettings, read

TICK_S = 0.1
FLUSH_S = 30.0


def main(arguments: list[str] | None = None) -> None:
    """Replay until the end of the days or until stopped; or exit with 1 after one line with the remedy."""
    options, stopped = parser().parse_args(arguments), Flag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    begin = datetime.combine(options.first, datetime.min.time(), UTC)
    try:
        producer = connect(read(KafkaSettings).kafka, app.topics.events)
    except StateloopError as error:
        sys.exit(f"stateloop replay: {error}")
    pace, sent = Pace(options.speed, time.monotonic), 0
    for reading in readings():
        if begin <= reading.ts < begin + timedelta(days=options.days) and _is_due(reading, pace, stopped.wait):
            send(producer, app.topics.events, reading)
            sent += 1
    left = producer.flush(FLUSH_S)
    sys.stdout.write(f"Sent {sent - left:,} readings\n")


def send(producer: Producer, topic: str, reading: Reading) -> None:
    """Queue a reading, with its own time."""
    value, stamp = orjson.dumps(reading.model_dump(exclude_none=True)), round(reading.ts.timestamp() * 1000)
    while True:
        try:
            producer.produce(topic, value, reading.station, timestamp=stamp)
        except BufferError:
            producer.poll(TICK_S)
        else:
            producer.poll(0)
            return


def parser() -> argparse.ArgumentParser:
    """The arguments, the same as of every replay that `stateloop up` starts."""
    made = argparse.ArgumentParser(prog="python -m examples.weather.replay", description="Replay the weather of 2013.")
    made.add_argument("--from", dest="first", type=date.fromisoformat, default=date(2013, 1, 1), metavar="DATE")
    made.add_argument("--days", type=int, default=365)
    made.add_argument("--speed", type=float, default=3600.0, help="seconds of the data in a second (default: 3600)")
    made.add_argument("--position", help="not used: the readings are sent again")
    return made


def _is_due(reading: Reading, pace: Pace, wait: Callable[[float], bool]) -> bool:
    """Wait until a reading is due; return False if it is stopped before."""
    while (left := pace.remaining(reading.ts)) > 0:
        if wait(min(left, TICK_S)):
            return False
    return not wait(0)


if __name__ == "__main__":
    main()
