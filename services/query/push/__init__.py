"""Push: subscriptions of clients to keys and filters, and what each of them has received.

`PushService` is the interface: it takes the changes of the stores and opens a `ClientStream` for each connection, which
a transport writes. Subscriptions to keys of other instances are relayed from these. Nothing here depends on the HTTP
server.
"""

from services.query.push.client_stream import ClientStream
from services.query.push.filter import SubscriptionFilter
from services.query.push.push_service import PushService

__all__ = ["ClientStream", "PushService", "SubscriptionFilter"]
