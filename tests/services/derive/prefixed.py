"""The flights on topics of one test, whose prefix the environment says."""

import os

from contracts import Application, Topics
from examples.flights.application import app as flights

app = Application(
    name="flights",
    event=flights.event,
    state=flights.state,
    enrichments=flights.enrichments,
    topics=Topics(prefix=os.environ.get("STATELOOP_TEST_PREFIX", ""), replay=True),
    asked=flights.asked,
    derived=flights.derived,
)
