import socket

import pytest

from annotation.errors import AddressRefused
from annotation.work import outgoing
from annotation.work.outgoing import Target, is_public, parse_target, pinned_address
from tests.inside_addresses import INSIDE, MISLEADING

ALLOWED = ["hooks.example.org", "other.example.org:8443", "127.0.0.1"]


def test_a_listed_host_is_read():
    assert parse_target("https://hooks.example.org/a?b=1", allowed=ALLOWED) == Target(
        "hooks.example.org", 443, "/a?b=1"
    )
    assert parse_target("https://HOOKS.example.org:443", allowed=ALLOWED) == Target("hooks.example.org", 443, "/")
    assert parse_target("https://other.example.org:8443/", allowed=ALLOWED).port == 8443


@pytest.mark.parametrize("url", MISLEADING)
def test_everything_else_is_refused(url):
    with pytest.raises(AddressRefused):
        parse_target(url, allowed=ALLOWED)


@pytest.mark.parametrize("address", INSIDE)
def test_the_networks_behind_the_site_are_not(address):
    assert not is_public(address)


def resolving(monkeypatch, *addresses):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in addresses]
    monkeypatch.setattr(outgoing.socket, "getaddrinfo", lambda *_, **__: found)


def test_the_address_that_was_checked_is_the_one_used(monkeypatch):
    resolving(monkeypatch, "93.184.216.34", "93.184.216.35")
    assert pinned_address(Target("hooks.example.org", 443, "/")) == "93.184.216.34"


@pytest.mark.parametrize("addresses", [(), ("10.0.0.1",), ("93.184.216.34", "127.0.0.1")])
def test_a_name_that_leads_inside_is_refused(monkeypatch, addresses):
    resolving(monkeypatch, *addresses)
    with pytest.raises(AddressRefused, match="not public"):
        pinned_address(Target("hooks.example.org", 443, "/"))


def test_the_allowance_of_tests_is_for_one_port_of_this_machine_alone(monkeypatch):
    resolving(monkeypatch, "127.0.0.1")
    assert pinned_address(Target("localhost", 8443, "/"), loopback="localhost:8443") == "127.0.0.1"
    for target, loopback in ((Target("localhost", 8444, "/"), "localhost:8443"), (Target("localhost", 8443, "/"), "")):
        with pytest.raises(AddressRefused):
            pinned_address(target, loopback=loopback)
    resolving(monkeypatch, "10.0.0.1")
    with pytest.raises(AddressRefused):
        pinned_address(Target("localhost", 8443, "/"), loopback="localhost:8443")


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "0",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "10.0.0.1",
        "167772161",
        "[::]",
        "[::1]",
        "[fe80::1]",
        "[fc00::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:a9fe:a9fe]",
        "[::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001::1]",
    ],
)
def test_an_inside_address_is_refused_however_it_is_written_even_if_somebody_listed_it(host):
    """The system itself reads these, as a connection would: decimal, hexadecimal, octal, shortened, mapped."""
    with pytest.raises(AddressRefused):
        pinned_address(parse_target(f"https://{host}/", allowed=[host, host.strip("[]")]))
