"""The job as a harness starts it: `python -m bench.yardstick`, with the settings of `python -m spark_app`.

A harness that also measures other engines makes the topics that all of them have. Ours writes one more.
"""

import sys
from contextlib import suppress

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.model.application import load
from contracts.model.topics import Topics
from contracts.settings import KafkaSettings, read
from spark_app.main import main
from spark_app.settings import JobSettings


def make_dead_letters(topics: Topics, settings: KafkaSettings) -> None:
    """Make the topic of dead letters, if it is missing."""
    admin = AdminClient(settings.client() | {"log_level": 0})
    made = admin.create_topics([NewTopic(topics.dead_letters, topics.partitions, 1)])
    with suppress(KafkaException):  # it exists, or there is no broker, which the job reports
        made[topics.dead_letters].result()


if __name__ == "__main__":
    settings = read(JobSettings)
    make_dead_letters(load(settings.application).topics, settings)
    sys.exit(main())
