"""One request to a language model: an endpoint that the administrator named, within bounds of time and size."""

# As for webhooks, the host must be listed, is resolved once, and the connection goes to that address; redirects are
# not followed. Plain HTTP and addresses that are not public are for hosts that are listed as local.

import http.client
import json
import ssl
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from annotation.errors import AddressRefused, AnnotationError
from annotation.work.outgoing import ReplyTooLong, Target, addresses_of, exchange, parse_target, pinned_address

REQUEST_SECONDS = 30.0
LARGEST_REPLY_BYTES = 64 * 1024
# A class has at most 200 letters.
MOST_TOKENS = 64
HTTP_PORT = 80


class EndpointFault(AnnotationError):
    """The endpoint gave no reply that can be read; `again` says whether to try once more, `after` when."""

    def __init__(self, words: str, *, again: bool, after: float = 0.0) -> None:
        super().__init__(words)
        self.again, self.after = again, after


@dataclass(frozen=True, slots=True)
class Endpoint:
    url: str
    model: str
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    content: str
    tokens: int


def target_of(endpoint: Endpoint, *, hosts: Collection[str], local: Collection[str]) -> tuple[Target, str, bool]:
    parts = urlsplit(endpoint.url)
    if parts.netloc.lower() not in local:
        target = parse_target(endpoint.url, allowed=hosts)
        return target, pinned_address(target), True
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.fragment:
        raise AddressRefused("The address cannot be read.")
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
    most_tokens: int = MOST_TOKENS,
) -> Reply:
    body = json.dumps(
        {"model": endpoint.model, "messages": list(messages), "temperature": 0, "max_tokens": most_tokens}
    ).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "DPAL"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    try:
        target, address, encrypted = target_of(endpoint, hosts=hosts, local=local)
        status, after, content = exchange(
            "POST",
            target,
            address=address,
            body=body,
            headers=headers,
            seconds=seconds,
            most_bytes=LARGEST_REPLY_BYTES,
            context=ssl.create_default_context() if encrypted else None,
        )
    except AddressRefused as error:
        raise EndpointFault(str(error), again=False) from error
    except ReplyTooLong as error:
        raise EndpointFault("the reply is too long", again=False) from error
    except (OSError, http.client.HTTPException) as error:
        raise EndpointFault(type(error).__name__, again=True) from error
    if status != http.HTTPStatus.OK:
        again = status == http.HTTPStatus.TOO_MANY_REQUESTS or status >= http.HTTPStatus.INTERNAL_SERVER_ERROR
        raise EndpointFault(f"HTTP {status}", again=again, after=after)
    return _read(content)


def _read(content: bytes) -> Reply:
    try:
        said = json.loads(content)
        text = said["choices"][0]["message"]["content"]
        tokens = said.get("usage", {}).get("total_tokens", 0)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise EndpointFault("the reply is no chat completion", again=False) from error
    if not isinstance(text, str):
        raise EndpointFault("the reply is no chat completion", again=False)
    return Reply(text, tokens if isinstance(tokens, int) and 0 <= tokens < 2**31 else 0)
