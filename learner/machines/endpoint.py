"""One request to a language model: an endpoint that the administrator named, a checked address, bounded time and size.

Managers choose by name among the endpoints of the site and never write an address. As for webhooks, the host must be
listed, is resolved once, and the connection goes to that address; redirects are not followed. Plain HTTP and addresses
that are not public are for hosts that are listed as local.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from learner.errors import LearnerError, WebhookRefused
from learner.releases.webhook_address import Target, addresses_of, parse_target, pinned_address

REQUEST_SECONDS = 30.0
LARGEST_REPLY_BYTES = 64 * 1024
# A class has at most 200 letters.
MOST_TOKENS = 64
HTTP_PORT = 80


class EndpointFault(LearnerError):
    """The endpoint gave no reply that can be read; `again` says whether to try once more, `after` when."""

    def __init__(self, words: str, *, again: bool, after: float = 0.0) -> None:
        super().__init__(words)
        self.again, self.after = again, after


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a language model answers, under which name it is known there, and the key it wants."""

    url: str
    model: str
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What was said, and how many tokens the endpoint counted."""

    content: str
    tokens: int


def target_of(endpoint: Endpoint, *, hosts: Collection[str], local: Collection[str]) -> tuple[Target, str, bool]:
    """Return where to connect, the resolved address, and whether the connection is encrypted.

    Raises
    ------
    WebhookRefused
        If the host is not listed, or its address is not public and the host is not listed as local.
    """
    parts = urlsplit(endpoint.url)
    if parts.netloc.lower() not in local:
        target = parse_target(endpoint.url, allowed=hosts)
        return target, pinned_address(target), True
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.fragment:
        raise WebhookRefused("The address of the language model cannot be read.")
    encrypted = parts.scheme == "https"
    target = Target(parts.hostname, parts.port or (443 if encrypted else HTTP_PORT), parts.path or "/")
    return target, addresses_of(target)[0], encrypted


def ask_model(
    endpoint: Endpoint,
    messages: Sequence[Mapping[str, str]],
    *,
    hosts: Collection[str],
    local: Collection[str],
    seconds: float = REQUEST_SECONDS,
) -> Reply:
    """Send one request of the chat completions interface and return the reply.

    Raises
    ------
    EndpointFault
        If there is no usable reply in time.
    """
    body = json.dumps(
        {"model": endpoint.model, "messages": list(messages), "temperature": 0, "max_tokens": MOST_TOKENS}
    ).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "DPAL"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    try:
        target, address, encrypted = target_of(endpoint, hosts=hosts, local=local)
        status, after, content = _exchange(target, address, encrypted, body, headers, seconds)
    except WebhookRefused as error:
        raise EndpointFault(str(error), again=False) from error
    except (OSError, http.client.HTTPException) as error:
        raise EndpointFault(type(error).__name__, again=True) from error
    if status != http.HTTPStatus.OK:
        again = status == http.HTTPStatus.TOO_MANY_REQUESTS or status >= http.HTTPStatus.INTERNAL_SERVER_ERROR
        raise EndpointFault(f"HTTP {status}", again=again, after=after)
    return _read(content)


def _exchange(
    target: Target, address: str, encrypted: bool, body: bytes, headers: dict[str, str], seconds: float
) -> tuple[int, float, bytes]:
    """Return status, seconds to wait and content; the whole exchange ends in time, however slowly bytes come."""
    ends = time.monotonic() + seconds
    context = ssl.create_default_context() if encrypted else None
    connection = _PinnedConnection(target, address, context, seconds)
    # A timeout of the socket alone starts anew with every byte.
    alarm = threading.Timer(seconds, connection.cut)
    alarm.daemon = True
    alarm.start()
    try:
        connection.request("POST", target.path, body=body, headers=headers)
        answer = connection.getresponse()
        content = b""
        while piece := answer.read1(4096):
            content += piece
            if len(content) > LARGEST_REPLY_BYTES:
                raise EndpointFault("the reply is too long", again=False)
            if time.monotonic() > ends:
                raise TimeoutError
        wait = answer.headers.get("Retry-After", "")
        return answer.status, float(wait) if wait.isdecimal() else 0.0, content
    finally:
        alarm.cancel()
        connection.close()


class _PinnedConnection(http.client.HTTPConnection):
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


def _read(content: bytes) -> Reply:
    """Read a chat completion; anything else is a fault that asking again would not mend."""
    try:
        said = json.loads(content)
        text = said["choices"][0]["message"]["content"]
        tokens = said.get("usage", {}).get("total_tokens", 0)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise EndpointFault("the reply is no chat completion", again=False) from error
    if not isinstance(text, str):
        raise EndpointFault("the reply is no chat completion", again=False)
    return Reply(text, tokens if isinstance(tokens, int) and 0 <= tokens < 2**31 else 0)
