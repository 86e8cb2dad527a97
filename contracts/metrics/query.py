"""The figures of an instance of the query service."""

from functools import partial

from contracts.metrics.metric import Metric, listed

_counter = partial(Metric, "query", "counter")
_gauge = partial(Metric, "query", "gauge")
_histogram = partial(Metric, "query", "histogram")

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

REQUESTS = _counter("requests", "Requests answered, by status.", ("status",))
KEYS = _counter("keys", "Requested keys, those of batches included.", ("state",))
REQUEST_SECONDS = _histogram(
    "request_seconds", "How long answers took, without those given at once and those that stay open.", (), SECONDS
)
REFUSED = _counter("refused", "Requests refused: host, token, rate, waits.", ("reason",))
WAITS = _gauge("waits", "Requests that wait for a version.")
STREAMS = _gauge("streams", "Connections that watch.")
SUBSCRIPTIONS = _gauge("subscriptions", "What they watch.", ("state",))
DELIVERED = _counter("delivered", "Changes sent to watching clients, by transport: sse, websocket.", ("way",))
CONFLATED = _counter("conflated", "Changes not sent, because a later one of the key existed when the client took it.")
RESETS = _counter("resets", "Resets sent to clients that were too slow.", ("way",))
WAITING_BYTES = _gauge("waiting_bytes", "Bytes of what waits for all clients that watch: 1 KiB for each key.")
CUT_OFF = _counter("cut_off", "Clients that watch, disconnected because too many bytes waited for all together.")
PUSH_SECONDS = _histogram(
    "push_seconds", "From when readers could see a change until it was written to who watches.", (), SECONDS
)
PARTITIONS = _gauge("partitions", "Partitions, by what the instance is to them.", ("state", "role"))
LAG = _gauge("lag", "Records in the topic that readers do not see yet, where it follows.", ("state",))
HELD = _gauge("held", "Keys in the store, approximately, with the remembered expired ones.", ("state",))
FREE_BYTES = _gauge("free_bytes", "Free bytes of the disk that has the store.", ("state",))
RECORDS = _counter("records", "Records read.", ("state",))
MISPLACED = _counter(
    "misplaced",
    "Keys of a sample that are in another partition than murmur2 names: reads do not find them.",
    ("state",),
)
GARBAGE = _counter("garbage", "Records passed over, because they are none of the state's.", ("state",))

CATALOGUE = listed(dict(globals()))
