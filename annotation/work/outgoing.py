"""Requests to other hosts: checked host, resolved once, pinned, no redirect, bounded."""

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from annotation.errors import AddressRefused

HTTPS_PORT = 443
# Addresses that translate to others, behind which a private one may hide.
TRANSLATED = tuple(
    ipaddress.ip_network(name) for name in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96")
)

# Python counts these as global: protocol assignments, and the relays of 6to4.
RESERVED = tuple(ipaddress.ip_network(name) for name in ("192.0.0.0/24", "192.88.99.0/24"))


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    port: int
    path: str

    @property
    def name(self) -> str:
        """Host, and port where it is not the usual one, as an administrator lists it."""
        return self.host if self.port == HTTPS_PORT else f"{self.host}:{self.port}"


def parse_target(url: str, *, allowed: Collection[str]) -> Target:
    """Read a typed address: https, of an allowed host (or host:port), with neither credentials nor fragment."""
    if not url.isascii() or any(character <= " " or character in '\\"<>\x7f' for character in url):
        raise AddressRefused("The address has invalid characters.")
    try:
        parts = urlsplit(url)
        port = parts.port if parts.port is not None else HTTPS_PORT
    except ValueError as error:
        raise AddressRefused("The address cannot be read.") from error
    if parts.scheme != "https" or not parts.hostname:
        raise AddressRefused("The address must begin with https:// and name a host.")
    if "@" in parts.netloc or parts.fragment:
        raise AddressRefused("The address must hold neither a password nor a fragment.")
    target = Target(parts.hostname, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    if target.name not in allowed:
        raise AddressRefused("An administrator has not allowed this host.")
    return target


def is_public(address: str) -> bool:
    """Say whether an IP address is one of the open internet, in whatever way it is written."""
    found = ipaddress.ip_address(address.split("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        elif any(found in network for network in TRANSLATED):
            return False
    if any(found in network for network in RESERVED):
        return False
    return found.is_global and not found.is_multicast and not found.is_reserved


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def addresses_of(target: Target) -> list[str]:
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        raise AddressRefused("The host's name does not resolve.") from error
    return [str(entry[4][0]) for entry in found]


def pinned_address(target: Target, *, loopback: str = "") -> str:
    """Resolve a target once and return the address to connect to.

    `AddressRefused` if there is none or any is private, loopback, link-local, reserved or multicast, except `loopback`,
    one host:port for tests.
    """
    addresses = addresses_of(target)
    if loopback and target.name == loopback and all(is_loopback(one) for one in addresses):
        return addresses[0]
    # One bad address among good ones is how a name is turned against the network behind the site.
    if not addresses or not all(is_public(address) for address in addresses):
        raise AddressRefused("The host's name leads to an address that is not public.")
    return addresses[0]


class ReplyTooLong(Exception):
    """An answer is longer than anything that was asked for."""


def exchange(
    method: str,
    target: Target,
    *,
    address: str,
    body: bytes | None,
    headers: Mapping[str, str],
    seconds: float,
    most_bytes: int,
    context: ssl.SSLContext | None,
) -> tuple[int, float, bytes]:
    """Ask once, within a total deadline; return status, seconds to wait and content, `ReplyTooLong` beyond
    `most_bytes`.
    """
    ends = time.monotonic() + seconds
    connection = _BoundedConnection(target, address, context, seconds)
    # A timeout of the socket alone starts anew with every byte.
    alarm = threading.Timer(seconds, connection.cut)
    alarm.daemon = True
    alarm.start()
    try:
        connection.request(method, target.path, body=body, headers=dict(headers))
        answer = connection.getresponse()
        content = b""
        while piece := answer.read1(4096):
            content += piece
            if len(content) > most_bytes:
                raise ReplyTooLong
            if time.monotonic() > ends:
                raise TimeoutError
        wait = answer.headers.get("Retry-After", "")
        return answer.status, float(wait) if wait.isdecimal() else 0.0, content
    finally:
        alarm.cancel()
        connection.close()


class _BoundedConnection(http.client.HTTPConnection):
    """A connection to an address that was checked, with the certificate of the name it was resolved from."""

    def __init__(self, target: Target, address: str, context: ssl.SSLContext | None, seconds: float) -> None:
        super().__init__(target.host, target.port, timeout=seconds)
        self.address, self.context, self.seconds = address, context, seconds

    def connect(self) -> None:
        """Connect to the pinned address; the name is not looked up again."""
        self.sock = socket.create_connection((self.address, self.port), timeout=self.seconds)
        if self.context is not None:
            self.sock = self.context.wrap_socket(self.sock, server_hostname=self.host)

    def cut(self) -> None:
        """End the exchange now, whatever either side is at."""
        if self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)
