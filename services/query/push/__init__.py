"""Push: subscriptions of clients to keys and filters, and what each of them has received.

`PushService` is the interface: it takes the changes of the stores and opens a `Stream` for each connection, which a
transport writes. What another instance owns is watched there. Nothing here depends on the HTTP server.
"""

from services.query.push.filter import SubscriptionFilter
from services.query.push.push_service import PushService
from services.query.push.stream import Stream

__all__ = ["PushService", "Stream", "SubscriptionFilter"]
