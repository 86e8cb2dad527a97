"""Applications with a filter of their events: with every reducer, and with overlapping windows."""

from contracts import field
from tests import clicks
from tests.everything import Everything, application

WHERE = (field("speed") >= 100) | ((field("name") == "a") & field("on").is_not_null())


class Passing(Everything, where=WHERE):
    """The state of the events that pass."""


class SlowHops(clicks.Hops, where=(field("ms") >= 500_000) | ~field("country").is_in("US", "")):
    """The state of the slow clicks, and of those from some countries."""


app = application(Passing)
hops = clicks.application(SlowHops)
