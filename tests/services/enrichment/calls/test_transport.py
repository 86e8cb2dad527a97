"""The allowed destinations and responses of calls: real sockets, certificates and redirects."""

from __future__ import annotations

import ssl
import time
from dataclasses import replace

import pytest
import trustme

from contracts import PermanentCallError, RetryableCallError
from services.enrichment.calls.transport import HttpTransport
from tests.services.enrichment.calls.calling import BOUNDS, Names, calling, transport
from tests.services.enrichment.fleet import QUICK
from tests.services.enrichment.registry import Registry

FOLLOWING = QUICK.model_copy(update={"redirects": 2})
SECRET = {"Authorization": "Bearer canary"}
LITERALS = (
    *(
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0",
        "0.0.0.0",  # noqa: S104  # not bound to: refused
        "127.0.0.1.",
        "\u2460\u2461\u2466.0.0.1",
        "127\u30020\u30020\u30021",
    ),
    *("2130706433", "0x7f000001", "017700000001", "0x7f.1", "0177.0.0.1", "0x7f.0x0.0x0.0x1", "127.0x0.0.01"),
    *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[2002:7f00:1::]"),
)
"""This machine, in the forms that one library or another takes for an address."""


def named(registry: Registry, host: str = "api.test") -> str:
    return registry.url.replace("127.0.0.1", host)


@pytest.mark.parametrize("host", LITERALS)
async def test_a_literal_address_is_checked_too(registry: Registry, host: str) -> None:
    async with transport(named(registry, host), allowed=()) as client:
        with pytest.raises(RetryableCallError, match=r"STATELOOP_ALLOWED_NETWORKS|the connection failed"):
            await client.get("/owners/P1", 1.0)
    assert registry.raw == []


async def test_a_name_that_leads_inside_is_refused(registry: Registry) -> None:
    for names in (Names(["127.0.0.1"]), Names(["10.0.0.1", "127.0.0.1"])):
        async with HttpTransport(
            named(registry), BOUNDS.__class__(1, 1000), clock=time.monotonic, resolver=names
        ) as client:
            with pytest.raises(RetryableCallError, match=r"of api.test is not public: .* STATELOOP_ALLOWED_NETWORKS"):
                await client.get("/owners/P1", 1.0)
    assert registry.raw == []


async def test_of_several_addresses_those_that_may_be_called_are(registry: Registry) -> None:
    names = Names(["10.0.0.1", "127.0.0.1"])
    async with HttpTransport(named(registry), BOUNDS, clock=time.monotonic, resolver=names) as client:
        assert (await client.get("/owners/P1", 1.0)).status == 200


async def test_a_name_is_not_looked_up_again_between_the_check_and_the_connection(registry: Registry) -> None:
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    async with HttpTransport(named(registry), BOUNDS, clock=time.monotonic, resolver=names) as client:
        for _ in range(3):
            assert (await client.get("/owners/P1", 1.0)).status == 200
    assert names.lookups == 1


async def test_redirects_are_followed_as_far_as_declared(registry: Registry) -> None:
    async with calling(registry, FOLLOWING) as one:
        assert (await one.answer("moved")).result == {"name": "owner of inside", "rating": 1.0}
        registry.leads_to = "/owners/moved"
        found = await one.answer("moved-again")
    assert (found.status, found.reason) == ("failure", "more than 2 redirects")
    assert registry.calls["/owners/moved"] == 3


async def test_a_redirect_has_the_time_that_is_left(registry: Registry) -> None:
    clock, registry.leads_to = iter((0.0, 100.0)), "/owners/slow"
    async with HttpTransport(registry.url, replace(BOUNDS, redirects=1), clock=lambda: next(clock)) as client:
        with pytest.raises(RetryableCallError, match="no answer within"):
            await client.get("/owners/moved", 5.0)


@pytest.mark.parametrize(
    ("leads_to", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data", "redirected to where no call may go: the address 169.254.169.254"),
        ("http://[::1]/", "redirected to where no call may go: the address ::1"),
        ("http://10.0.0.1:6379/", "redirected to where no call may go: the address 10.0.0.1"),
        ("file:///etc/passwd", "redirected to another scheme"),
        ("ftp://127.0.0.1/", "redirected to another scheme"),
        ("http://user:word@127.0.0.1/", "redirected to another scheme, or with a user"),
        ("http://[", "redirected to an invalid URL"),
        ("http://a..b/", "redirected to an invalid URL"),
        (f"http://{64 * 'a'}.example/", "redirected to an invalid URL"),
        ("http://xn--/", "redirected to an invalid URL"),
        ("http://[1:2:3]/", "redirected to an invalid URL"),
        ("//169.254.169.254/latest", "redirected to where no call may go: the address 169.254.169.254"),
        ("http://[::ffff:10.0.0.1]/", "redirected to where no call may go: the address ::ffff:"),
        ("http://[64:ff9b::a9fe:a9fe]/", "redirected to where no call may go: the address 64:ff9b::a9fe:a9fe"),
        ("http://[2002:a00:1::]/", "redirected to where no call may go: the address 2002:a00:1::"),
        ("http://api.test@169.254.169.254/", "redirected to another scheme, or with a user"),
        ("gopher://169.254.169.254/", "redirected to another scheme"),
        ("unix:/var/run/docker.sock", "redirected to another scheme"),
        ("http+unix://socket/", "redirected to another scheme"),
    ],
)
async def test_a_redirect_inwards_is_not_followed(registry: Registry, leads_to: str, reason: str) -> None:
    registry.leads_to = leads_to
    async with calling(registry, FOLLOWING) as one:
        found = await one.answer("moved")
    assert found.status == "failure"
    assert found.reason is not None
    assert found.reason.startswith(reason)
    assert registry.calls == {"/owners/moved": 1}


async def test_secret_headers_go_to_the_api_and_not_where_it_sends_us(registry: Registry) -> None:
    async with Registry().serving() as other, calling(registry, FOLLOWING, headers=SECRET) as one:
        registry.leads_to = f"{other.url}/owners/echo"
        assert (await one.answer("moved")).result == {"name": "nobody", "rating": 1.0}
        registry.leads_to = "/owners/echo"
        found = await one.answer("moved-here")
    assert (found.status, found.response) == ("failure", None)
    assert found.reason == "the response repeats a secret header of ours, and must not be written anywhere"


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def certificate(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    return context


async def test_a_right_certificate_is_trusted(authority: trustme.CA, trusting: ssl.SSLContext) -> None:
    async with (
        Registry().serving(certificate(authority, "127.0.0.1")) as api,
        HttpTransport(api.url, BOUNDS, clock=time.monotonic, trusted=trusting) as client,
    ):
        assert (await client.get("/owners/P1", 1.0)).status == 200


@pytest.mark.parametrize("name", ["127.0.0.2", "api.test"])
async def test_a_certificate_for_another_host_is_refused(
    authority: trustme.CA, trusting: ssl.SSLContext, name: str
) -> None:
    async with (
        Registry().serving(certificate(authority, name)) as api,
        HttpTransport(api.url, BOUNDS, clock=time.monotonic, trusted=trusting) as client,
    ):
        with pytest.raises(RetryableCallError, match="SSLCertVerificationError"):
            await client.get("/owners/P1", 1.0)
        assert api.raw == []


async def test_an_untrusted_certificate_is_refused(authority: trustme.CA) -> None:
    async with Registry().serving(certificate(authority, "127.0.0.1")) as api, transport(api.url) as client:
        with pytest.raises(RetryableCallError, match="SSLCertVerificationError"):
            await client.get("/owners/P1", 1.0)
        assert api.raw == []


async def test_from_https_no_redirect_leads_to_http(authority: trustme.CA, trusting: ssl.SSLContext) -> None:
    async with (
        Registry().serving(certificate(authority, "127.0.0.1")) as api,
        Registry().serving() as plain,
        HttpTransport(
            api.url, BOUNDS.__class__(1, 1000, 1, BOUNDS.allowed), clock=time.monotonic, trusted=trusting
        ) as client,
    ):
        api.leads_to = f"{plain.url}/owners/P1"
        with pytest.raises(PermanentCallError, match="another scheme"):
            await client.get("/owners/moved", 1.0)
        assert plain.raw == []
