"""The addresses that may be called."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.settings import read
from services.enrichment.calls.addresses import AddressRefusedError, check, may_be_called
from services.enrichment.settings import EnrichmentSettings


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",  # noqa: S104  # not bound to: refused
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.127.255.255",
        "192.0.2.1",
        "198.18.0.1",
        "192.0.0.192",
        "192.88.99.1",
        "168.63.129.16",
        "::ffff:192.0.0.192",
        "3fff::1",
        "224.0.1.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "fc00::1",
        "fd12:3456::1",
        "ff02::1",
        "ff0e::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:f7f7:f7f7",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808",
        "64:ff9b:1:a00:0:100:808:808",  # 10.0.0.1, where a gateway takes the address behind the first 48 bits
        "2002:a9fe:a9fe::1",
        "::ffff:0:7f00:1",
        "::8.8.8.8",
        "::ffff:169.254.169.254",
        "fd00:ec2::254",
        "100.100.100.200",
        "169.254.170.2",
        "198.51.100.1",
        "203.0.113.1",
        "100::1",
        "5f00::1",
        "2001:2::1",
        "2001:20::1",
        "2001:10::1",
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(AddressRefusedError, match="STATELOOP_ALLOWED_NETWORKS"):
        check(address, ())


@pytest.mark.parametrize("address", ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808"])
def test_a_public_address_may_be_called(address: str) -> None:
    check(address, ())


def test_a_network_that_is_named_may_be_called_and_no_more() -> None:
    allowed = [ip_network("10.1.0.0/16"), ip_network("fd00::/8")]
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd12::1"):
        check(address, allowed)
    for address in ("10.2.0.1", "127.0.0.1", "fc00::1"):
        with pytest.raises(AddressRefusedError):
            check(address, allowed)


def test_the_error_has_a_setting_that_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    message = str(AddressRefusedError("127.0.0.1", "localhost"))
    assert message.startswith("the address 127.0.0.1 of localhost is not public")
    monkeypatch.setenv("STATELOOP_APPLICATION", "cold.application:app")
    monkeypatch.setenv("STATELOOP_ALLOWED_NETWORKS", message.partition("='")[2].partition("'")[0])
    allowed = read(EnrichmentSettings).allowed_networks
    check("127.0.0.1", allowed)


@given(st.ip_addresses(v=4))
def test_an_address_in_disguise_is_as_good_as_itself(address: IPv4Address) -> None:
    disguised = ip_address(f"::ffff:{address}"), ip_address("2002::"), ip_address("64:ff9b::")
    mapped, sixtofour, translated = disguised
    plain = may_be_called(address, ())
    assert may_be_called(mapped, ()) == plain
    assert may_be_called(IPv6Address(int(sixtofour) | int(address) << 80), ()) == plain
    assert may_be_called(IPv6Address(int(translated) | int(address)), ()) == plain
