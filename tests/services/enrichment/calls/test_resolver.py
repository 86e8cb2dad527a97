"""Names lead to addresses that may be called, and to no others."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from services.enrichment.calls.addresses import AddressRefusedError
from services.enrichment.calls.resolver import CheckedResolver
from tests.services.enrichment.calls.calling import Names

ALLOWED = (ip_network("10.1.0.0/16"),)


async def test_those_that_may_not_be_called_are_left_out() -> None:
    resolver = CheckedResolver(Names(["10.1.0.1", "10.2.0.1", "8.8.8.8", "fe80::1%eth0"]), ALLOWED)
    assert [one["host"] for one in await resolver.resolve("api.test")] == ["10.1.0.1", "8.8.8.8"]


async def test_when_none_is_left_the_error_names_the_host() -> None:
    with pytest.raises(AddressRefusedError, match=r"10\.2\.0\.1 of api\.test"):
        await CheckedResolver(Names(["10.2.0.1"]), ALLOWED).resolve("api.test")


async def test_a_name_without_an_address_is_an_error() -> None:
    with pytest.raises(OSError, match=r"api\.test has no address"):
        await CheckedResolver(Names([]), ALLOWED).resolve("api.test")
