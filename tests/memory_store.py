"""A small S3 store in memory that fails when it is told to, on one loopback address; it checks no signature."""

import hashlib
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

HELD = -1
XML = "http://s3.amazonaws.com/doc/2006-03-01/"


class MemoryStore(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.objects: dict[str, bytes] = {}
        self.under_way: dict[str, dict[int, bytes]] = {}
        self.aborted = 0
        # Key, first and last byte of each range that was asked for.
        self.ranges: list[tuple[str, int, int]] = []
        # Part number to what happens at it: a status, 0 for a connection that is cut, HELD for no answer.
        self.failing: dict[int, int] = {}
        self.part_came, self.let_go = threading.Event(), threading.Event()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def running() -> Iterator[MemoryStore]:
    store = MemoryStore()
    thread = threading.Thread(target=store.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.let_go.set()
        store.shutdown()
        store.server_close()
        thread.join()


class _Request(BaseHTTPRequestHandler):
    server: MemoryStore
    protocol_version = "HTTP/1.1"

    def log_message(self, *given: object) -> None:
        """Say nothing."""

    def _read(self) -> bytes:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return _unchunked(body) if "aws-chunked" in self.headers.get("Content-Encoding", "") else body

    def _answer(self, status: int, body: str = "", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    @property
    def _key(self) -> str:
        return urlsplit(self.path).path

    @property
    def _query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query, keep_blank_values=True)

    def do_HEAD(self) -> None:
        known = self.server.objects.get(self._key)
        self.send_response(404 if known is None else 200)
        self.send_header("Content-Length", str(len(known or b"")))
        self.send_header("ETag", _etag(known or b""))
        self.end_headers()

    def do_GET(self) -> None:
        if "list-type" in self._query:
            (prefix,) = self._query["prefix"]
            keys = {name.removeprefix(f"{self._key}/"): content for name, content in self.server.objects.items()}
            found = "".join(
                f"<Contents><Key>{key}</Key><Size>{len(content)}</Size><ETag>{_etag(content)}</ETag></Contents>"
                for key, content in sorted(keys.items())
                if key.startswith(prefix)
            )
            self._answer(200, f'<ListBucketResult xmlns="{XML}">{found}</ListBucketResult>')
            return
        content = self.server.objects.get(self._key, b"")
        if self.headers["If-Match"] != _etag(content):
            self._answer(412)
            return
        start, end = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        self.server.ranges.append((self._key, start, end))
        part = content[start : end + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def do_POST(self) -> None:
        self._read()
        if "uploads" in self._query:
            number = uuid.uuid4().hex
            self.server.under_way[number] = {}
            kind = "InitiateMultipartUploadResult"
            body = f'<{kind} xmlns="{XML}"><UploadId>{number}</UploadId></{kind}>'
        else:
            parts = self.server.under_way.pop(self._query["uploadId"][0])
            self.server.objects[self._key] = b"".join(parts[number] for number in sorted(parts))
            body = f'<CompleteMultipartUploadResult xmlns="{XML}"><ETag>"x"</ETag></CompleteMultipartUploadResult>'
        self._answer(200, body)

    def do_PUT(self) -> None:
        if "partNumber" not in self._query:
            self.server.objects[self._key] = self._read()
            self._answer(200, ETag='"x"')
            return
        part = int(self._query["partNumber"][0])
        failure = self.server.failing.get(part)
        if failure == 0:
            self.rfile.read(1000)
            self.close_connection = True
            self.connection.close()
            return
        content = self._read()
        if failure == HELD:
            self.server.part_came.set()
            self.server.let_go.wait(60)
            self.close_connection = True
            return
        if failure is not None:
            self._answer(failure)
            return
        self.server.under_way[self._query["uploadId"][0]][part] = content
        self._answer(200, ETag='"x"')

    def do_DELETE(self) -> None:
        if "uploadId" in self._query:
            del self.server.under_way[self._query["uploadId"][0]]
            self.server.aborted += 1
        else:
            self.server.objects.pop(self._key, None)
        self._answer(204)


def _etag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _unchunked(body: bytes) -> bytes:
    found, place = [], 0
    while place < len(body):
        end = body.index(b"\r\n", place)
        size = int(body[place:end].partition(b";")[0], 16)
        if not size:
            break
        found.append(body[end + 2 : end + 2 + size])
        place = end + 2 + size + 2
    return b"".join(found)
