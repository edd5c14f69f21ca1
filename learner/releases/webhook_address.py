"""Sending a message to an address outside, and to no other: checked host, resolved once, pinned, no redirect."""

import http.client
import ipaddress
import socket
import ssl
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from learner.errors import WebhookRefused

TIMEOUT_SECONDS = 5.0
HTTPS_PORT = 443
# Addresses that translate to others, behind which a private one may hide.
TRANSLATED = tuple(
    ipaddress.ip_network(name) for name in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96")
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a message goes."""

    host: str
    port: int
    path: str

    @property
    def name(self) -> str:
        """Host, and port where it is not the usual one, as an administrator lists it."""
        return self.host if self.port == HTTPS_PORT else f"{self.host}:{self.port}"


def parse_target(url: str, *, allowed: Collection[str]) -> Target:
    """Read a webhook's address.

    Parameters
    ----------
    url : str
        Must be https, of an allowed host, with neither credentials nor fragment.
    allowed : collection of str
        Hosts in lower case, or host:port for another port than 443.

    Raises
    ------
    WebhookRefused
        If the address is none that may be sent to.
    """
    if not url.isascii() or any(character <= " " or character in '\\"<>\x7f' for character in url):
        raise WebhookRefused("The address has characters that do not belong into one.")
    try:
        parts = urlsplit(url)
        port = parts.port if parts.port is not None else HTTPS_PORT
    except ValueError as error:
        raise WebhookRefused("The address cannot be read.") from error
    if parts.scheme != "https" or not parts.hostname:
        raise WebhookRefused("The address must begin with https:// and name a host.")
    if "@" in parts.netloc or parts.fragment:
        raise WebhookRefused("The address must hold neither a password nor a fragment.")
    target = Target(parts.hostname, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    if target.name not in allowed:
        raise WebhookRefused("An administrator has not allowed this host.")
    return target


def is_public(address: str) -> bool:
    """Say whether an IP address is one of the open internet, in whatever way it is written."""
    found = ipaddress.ip_address(address.split("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        elif any(found in network for network in TRANSLATED):
            return False
    return found.is_global and not found.is_multicast and not found.is_reserved


def addresses_of(target: Target) -> list[str]:
    """Resolve a target once and return its addresses.

    Raises
    ------
    WebhookRefused
        If the name does not resolve.
    """
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        raise WebhookRefused("The host's name does not resolve.") from error
    return [str(entry[4][0]) for entry in found]


def pinned_address(target: Target, *, loopback: str = "") -> str:
    """Resolve a target once and return the address to connect to.

    Parameters
    ----------
    target : Target
        From `parse_target`.
    loopback : str
        The one host:port of this machine that is allowed all the same; for tests of the site alone.

    Raises
    ------
    WebhookRefused
        If the name does not resolve, or any of its addresses is private, loopback, link-local, reserved or multicast.
    """
    addresses = addresses_of(target)
    if loopback and target.name == loopback and all(ipaddress.ip_address(one).is_loopback for one in addresses):
        return addresses[0]
    # One bad address among good ones is how a name is turned against the network behind the site.
    if not addresses or not all(is_public(address) for address in addresses):
        raise WebhookRefused("The host's name leads to an address that is not public.")
    return addresses[0]


class PinnedConnection(http.client.HTTPSConnection):
    """HTTPS to an address that was checked, with the certificate of the name it was resolved from."""

    def __init__(self, target: Target, address: str, context: ssl.SSLContext) -> None:
        super().__init__(target.host, target.port, timeout=TIMEOUT_SECONDS, context=context)
        self.address = address
        self.tls = context

    def connect(self) -> None:
        """Connect to the pinned address; the name is not looked up again."""
        plain = socket.create_connection((self.address, self.port), timeout=TIMEOUT_SECONDS)
        try:
            self.sock = self.tls.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise


def post(target: Target, *, address: str, body: bytes, headers: dict[str, str], ca_file: str = "") -> int:
    """Send a message and return the status of the answer, whose content nobody reads; redirects are not followed.

    Raises
    ------
    OSError, http.client.HTTPException
        If nobody answers as a web server with the right certificate does.
    """
    context = ssl.create_default_context(cafile=ca_file or None)
    connection = PinnedConnection(target, address, context)
    try:
        connection.request("POST", target.path, body=body, headers={"Content-Type": "application/json", **headers})
        return connection.getresponse().status
    finally:
        connection.close()
