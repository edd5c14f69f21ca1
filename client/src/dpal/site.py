"""A site's REST interface: requests that are sent again where that helps, and refusals as sentences."""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from dpal.errors import Broken, DpalError, NotAllowed, NotInScope, NotReached, NotThere, NotTrusted, Refused
from dpal.settings import known_of, site_address

# Seconds to wait for a connection, and for the next bytes.
TIMEOUT = (10, 60)
BLOCK_BYTES = 2**18
RETRIES = Retry(
    total=4,
    connect=2,
    other=0,
    backoff_factor=0.5,
    status_forcelist=(429, 502, 503, 504),
    # A write carries an Idempotency-Key, so that sent again it happens once.
    allowed_methods=None,
    respect_retry_after_header=True,
    raise_on_status=False,
)


class Site:
    """One site, asked with one token; leaving it as a context manager closes its connections.

    Parameters
    ----------
    address : str
        Like ``https://dpal.example.org``.
    token : str, optional
        By default that of the environment variable DPAL_TOKEN, then that of the last `dpal login` there.
    """

    def __init__(self, address: str, token: str | None = None) -> None:
        self.address = site_address(address)
        self._session = requests.Session()
        self._session.mount("https://", HTTPAdapter(max_retries=RETRIES))
        self._session.mount("http://", HTTPAdapter(max_retries=RETRIES))
        token = token or os.environ.get("DPAL_TOKEN") or known_of(self.address).token
        if not token:
            raise NotAllowed(f"There is no token for {self.address}: pass one, or run `dpal login {self.address}`.")
        self._headers = {"Authorization": f"Bearer {token}"}

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *raised: object) -> None:
        self._session.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Ask a route under ``/api/v1/`` and return its answer; every write has an Idempotency-Key of its own.

        Parameters
        ----------
        method : str
        path : str
            Like ``projects/intents/members``; names in it go through `quoted`.
        query : mapping, optional
            What is None is left out.
        body : optional
            Sent as JSON.
        data : optional
            Sent as it is, with a Content-Type among the `headers`.
        """
        key = {} if method == "GET" else {"Idempotency-Key": str(uuid.uuid4())}
        headers = {**key, **(headers or {})}
        return self._json(self._ask(method, f"/api/v1/{path}", headers=headers, params=query, json=body, data=data))

    def get(self, path: str, *, headers: Mapping[str, str] | None = None) -> Any:
        """Return a JSON document of the site outside its REST interface."""
        return self._json(self._ask("GET", path, headers=headers))

    def pages(self, path: str) -> Iterator[Any]:
        """Yield everything of a list; each page is asked for once the one before it was read."""
        address = f"/api/v1/{path}"
        while address:
            answer = self._ask("GET", address)
            yield from self._json(answer)
            following = answer.links.get("next", {}).get("url", "")
            address = following.removeprefix(self.address)

    def file(self, path: str, *, start: int = 0, tag: str = "") -> Iterator[bytes]:
        """Yield a file's bytes from `start` on, if it still has that tag; `Broken` if the connection ends early."""
        headers = {"Accept-Encoding": "identity"}
        if start:
            headers |= {"Range": f"bytes={start}-", "If-Range": tag}
        answer = self._ask("GET", path, headers=headers, stream=True)
        with answer:
            if start and answer.status_code != 206:
                raise Broken(
                    f"{self.address} sent the whole of {name_of(path)} where its rest was asked for: try again."
                )
            expected = int(answer.headers.get("Content-Length", -1))
            received = 0
            try:
                for block in answer.iter_content(BLOCK_BYTES):
                    received += len(block)
                    yield block
            except requests.RequestException as error:
                raise Broken(broken(self.address, path)) from error
            if received < expected:
                raise Broken(broken(self.address, path))

    def _ask(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **given: Any
    ) -> requests.Response:
        try:
            answer = self._session.request(
                method,
                self.address + path,
                headers={**self._headers, **(headers or {})},
                timeout=TIMEOUT,
                # A token goes to the site it was made for and nowhere else.
                allow_redirects=False,
                **given,
            )
        except requests.exceptions.SSLError as error:
            raise NotTrusted(_certificate(self.address, str(error))) from error
        except (requests.ConnectionError, requests.Timeout) as error:
            # Certificates that are refused while a request is sent again come in another error.
            if "CERTIFICATE" in str(error).upper():
                raise NotTrusted(_certificate(self.address, str(error))) from error
            raise NotReached(f"{self.address} does not answer: check the address and the network.") from error
        if answer.status_code >= 300:
            with answer:
                raise self._refusal(answer, path)
        return answer

    def _json(self, answer: requests.Response) -> Any:
        if answer.status_code == 204:
            return None
        try:
            return answer.json()
        except ValueError as error:
            raise NotReached(f"{self.address} does not answer as a DPAL site does: check the address.") from error

    def _refusal(self, answer: requests.Response, path: str) -> DpalError:
        said = _detail(answer)
        status = answer.status_code
        if status == 401:
            return NotAllowed(
                f"{self.address} does not accept the token: it may have expired or been revoked. Make another there "
                f"and run `dpal login {self.address}`."
            )
        if status == 403:
            return NotInScope(f"{self.address} does not allow this with the token: {said}")
        if status == 404:
            return NotThere(f"{self.address} has no {_asked_for(path)}, or you have no part in it.")
        if status < 400:
            return NotReached(f"{self.address} sends elsewhere: use the address that it has now.")
        return Refused(f"{self.address} refuses ({status}): {said}")


def quoted(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(name, safe="")


def name_of(path: str) -> str:
    """Return the file a path ends with."""
    return path.rpartition("/")[2]


def _asked_for(path: str) -> str:
    parts = path.removeprefix("/api/v1/").partition("?")[0].split("/")
    named = {"projects": "project", "models": "version", "files": "file", "jobs": "job"}
    pairs = [f"{named[kind]} {name}" for kind, name in pairwise(parts) if kind in named]
    return " of ".join(reversed(pairs)) or "such route"


def broken(address: str, path: str) -> str:
    """Return the sentence for a download that ended early."""
    return f"The download of {name_of(path)} from {address} broke off: run the same again, it goes on from there."


def _certificate(address: str, said: str) -> str:
    if "expired" in said:
        return f"The certificate of {address} has expired, so nothing was sent or received: tell whoever runs the site."
    return f"The certificate of {address} is not trusted here, so nothing was sent or received: check the address."


def _detail(answer: requests.Response) -> str:
    try:
        said = json.loads(answer.content)
        rules = "; ".join(f"{one.get('field', '')}: {one.get('rule', '')}" for one in said.get("errors", ()))
        return " ".join(filter(None, [str(said["detail"]), rules]))
    except (ValueError, KeyError, TypeError, AttributeError, requests.RequestException):
        return answer.reason or "no reason given"
