"""People before the label page: many at once, each with a browser of their own, and how fast they get on."""

import http.client
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

SUBMIT = re.compile(rb'hx-post="(/assignments/[^"]+/submit/)"')
TOKEN = re.compile(rb'name="csrfmiddlewaretoken"\s+value="([^"]+)"')
KEY = re.compile(rb'name="key"\s+value="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Result:
    annotators: int
    items_per_second: float
    p50_ms: float
    p95_ms: float
    seconds: float


def at_once(number: int, seconds: float, make_step: Callable[[int], Callable[[], bool]]) -> Result:
    """Let `number` threads repeat their step for some seconds; a step that returns false ends its thread."""
    steps = [make_step(n) for n in range(number)]
    together = threading.Barrier(number + 1)
    timings: list[float] = []
    failures: list[BaseException] = []

    def run(step: Callable[[], bool]) -> None:
        mine = []
        together.wait()
        end = time.perf_counter() + seconds
        try:
            while (start := time.perf_counter()) < end and step():
                mine.append(time.perf_counter() - start)
        except Exception as error:  # noqa: BLE001 - raised again below, on the main thread
            failures.append(error)
        timings.extend(mine)

    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    together.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - start
    if failures:
        raise failures[0]
    if not timings:
        raise RuntimeError("nothing was left to answer")
    ordered = sorted(timings)
    p50, p95 = (1000 * ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.95))
    return Result(number, len(ordered) / elapsed, p50, p95, elapsed)


class Annotator:
    """One person's browser: keeps its connection, its cookies and what the page gave it to send."""

    def __init__(self, host: str, session: str, page: str) -> None:
        self._http = http.client.HTTPConnection(host, timeout=30)
        self._cookies = {"sessionid": session}
        self._read(self._ask("GET", page))

    def back_at_work(self) -> Callable[[], bool]:
        """Open a connection anew, as a browser does after a pause, and return what a step is."""
        self._http.close()
        return self.answer

    def answer(self) -> bool:
        """Answer the question shown and take in the next; false when there is none."""
        if self._submit is None:
            return False
        self._read(self._ask("POST", self._submit, f"choice=0&key={self._key}&csrfmiddlewaretoken={self._token}"))
        return True

    def _ask(self, method: str, path: str, body: str | None = None) -> bytes:
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())}
        if body is not None:
            headers |= {"HX-Request": "true", "Content-Type": "application/x-www-form-urlencoded"}
        self._http.request(method, path, body, headers)
        response = self._http.getresponse()
        for cookie in response.headers.get_all("Set-Cookie", ()):
            name, _, value = cookie.partition(";")[0].partition("=")
            self._cookies[name] = value
        content = response.read()
        if response.status != 200:
            raise RuntimeError(f"{method} answered {response.status}")
        return content

    def _read(self, page: bytes) -> None:
        submit, token = SUBMIT.search(page), TOKEN.search(page)
        self._submit = submit and submit.group(1).decode()
        self._token = token and token.group(1).decode()
        key = KEY.search(page)
        self._key = key and key.group(1).decode()
