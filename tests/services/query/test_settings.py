from __future__ import annotations

from services.query.settings import QuerySettings


def test_clients_reconnect_soon_unless_the_user_sets_it() -> None:
    options = {"reconnect.backoff.max.ms": "9000"}
    usual, own = (QuerySettings.model_validate({"application": "a:b", "kafka_options": one}) for one in ({}, options))
    assert usual.client()["reconnect.backoff.max.ms"] == "500"
    assert (own.client()["reconnect.backoff.max.ms"], own.client()["reconnect.backoff.ms"]) == ("9000", "50")
