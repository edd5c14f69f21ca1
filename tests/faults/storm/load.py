"""People and programs that use a site over HTTP whatever happens to it: every write is sent until it is answered.

What was answered is kept as it was acknowledged; `verdict` holds the database against it.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import requests

from tests import learning, streaming
from tests.lakes import write_table

TIMEOUT_SECONDS = 30
THINKING_SECONDS = 0.1
BETWEEN_UPLOADS_SECONDS = 4.0
BETWEEN_POSTS_SECONDS = 1.0
# A cluster takes half a minute for a gate, and a worker counts two at once.
BETWEEN_GATES_SECONDS = 60.0
TABLE_FILES = 6
# Of the public test set of the experts.
TESTED_ROWS, TESTED_SEED = 60, 2
# The server said what it thinks of the request; anything from 500 up, or nothing at all, is asked again.
EXPECTED_REFUSALS = (409,)
PROJECTS = ("experts", "crowd", "stream")


@dataclass
class Acknowledged:
    labels: list[dict[str, Any]] = field(default_factory=list)
    uploads: list[dict[str, Any]] = field(default_factory=list)
    posts: list[dict[str, Any]] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    repeats: int = 0
    failed_tries: Counter[str] = field(default_factory=Counter)
    slowest_seconds: float = 0.0


class Client:
    """One token's requests; each is repeated under its key until the site has answered it."""

    def __init__(self, url: str, token: str, seen: Acknowledged, gone: threading.Event) -> None:
        self._url, self._seen, self._gone = url, seen, gone
        self._headers = {"Authorization": f"Bearer {token}"}

    def post(self, path: str, **body: Any) -> requests.Response | None:
        """Return the answer; None once the storm gives up on the site."""
        key, began = str(uuid4()), time.monotonic()
        while not self._gone.is_set():
            try:
                # A connection each: one that its server left is an error of its own otherwise.
                answer = requests.post(
                    f"{self._url}/api/v1/{path}",
                    headers={**self._headers, "Idempotency-Key": key, "Connection": "close"},
                    timeout=TIMEOUT_SECONDS,
                    **body,
                )
            except requests.RequestException as error:
                self._seen.failed_tries[type(error).__name__] += 1
            else:
                if answer.status_code < 500 and answer.status_code != 429:
                    self._seen.repeats += "Idempotency-Replayed" in answer.headers
                    self._seen.slowest_seconds = max(self._seen.slowest_seconds, time.monotonic() - began)
                    return answer
                self._seen.failed_tries[str(answer.status_code)] += 1
            self._gone.wait(0.1)
        return None


class Load:
    """Annotators, uploaders and a stream's sender, each a thread; `stop` lets each end what it has begun.

    With `lake`, a folder, tables of it are registered as well, and the crowd's uploads come as seldom as these.
    """

    def __init__(self, url: str, places: dict[str, Any], seed: int, lake: Path | None = None) -> None:
        self.seen = Acknowledged()
        self._lake = lake
        self._url, self._places, self._seed = url, places, seed
        self._enough = threading.Event()
        self._gone = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for name in PROJECTS:
            for token in self._places[name]["annotators"]:
                self._run(self._annotate, name, token)
        for name in ("experts", "crowd"):
            self._run(self._upload, name, self._places[name]["manager"])
        if self._lake is not None:
            self._run(self._register, "tables", self._places["tables"]["manager"])
        self._run(self._send, "stream", self._places["stream"]["manager"])

    def stop(self, timeout_seconds: float) -> None:
        """Let everybody end what they are at; after the time, whoever still waits for an answer gives up."""
        self._enough.set()
        end = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        left = [thread.name for thread in self._threads if thread.is_alive()]
        self._gone.set()
        for thread in self._threads:
            thread.join(2 * TIMEOUT_SECONDS)
        if left:
            self.seen.unexpected.append(f"no answer in {timeout_seconds:.0f} s: {', '.join(left)}")

    def told(self) -> dict[str, Any]:
        seen = self.seen
        return {"labels": seen.labels, "uploads": seen.uploads, "posts": seen.posts, "staged": self._places["staged"]}

    def _run(self, act: Callable[[str, Client, random.Random], None], name: str, token: str) -> None:
        rng = random.Random(f"{self._seed} {len(self._threads)}")
        client = Client(self._url, token, self.seen, self._gone)

        def tell() -> None:
            try:
                act(name, client, rng)
            except Exception as error:  # noqa: BLE001 - a thread's error would be told to nobody
                self.seen.unexpected.append(f"{act.__name__} of {name}: {error!r}")

        thread = threading.Thread(target=tell, name=f"{act.__name__} {name} {len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _annotate(self, name: str, client: Client, rng: random.Random) -> None:
        slug = self._places[name]["slug"]
        while not self._enough.wait(THINKING_SECONDS * rng.uniform(0.5, 1.5)):
            held = client.post(f"projects/{slug}/assignments")
            if held is None or held.status_code == 204:
                self._enough.wait(0.3)
                continue
            if held.status_code != 200:
                self._refused("claim", held)
                continue
            question = held.json()
            choice = _answer_to(question)
            answer = client.post(f"assignments/{question['id']}/label", json={"choice": choice})
            if answer is None:
                continue
            if answer.status_code != 200:
                self._refused("label", answer)
                continue
            self.seen.labels.append({"assignment": question["id"], "label": answer.json()["id"], "choice": choice})

    def _upload(self, name: str, client: Client, rng: random.Random) -> None:
        place = self._places[name]
        between = BETWEEN_GATES_SECONDS if name == "crowd" and self._lake is not None else BETWEEN_UPLOADS_SECONDS
        while not self._enough.wait(between * rng.uniform(0.5, 1.5)):
            number = len(self.seen.uploads)
            broken = rng.random() < 0.2
            rows, body, form = _crowd_file(rng) if name == "crowd" else _experts_file(rng)
            if broken:
                body, form = body + b'\n"no end', form | {"bad_rows": "refuse_all"}
            answer = client.post(
                f"projects/{place['slug']}/datasets", files={"file": (f"upload {number}.csv", body)}, data=form
            )
            if answer is None:
                continue
            if answer.status_code != 202:
                self._refused("upload", answer)
                continue
            self.seen.uploads.append({"dataset": answer.json()["id"], "rows": 0 if broken else rows})

    def _register(self, name: str, client: Client, rng: random.Random) -> None:
        assert self._lake is not None
        slug, number = self._places[name]["slug"], 0
        while not self._enough.wait(BETWEEN_GATES_SECONDS * rng.uniform(0.5, 1.5)):
            number += 1
            texts, people = _said_by_a_crowd(rng)
            table = write_table(self._lake / f"table-{number}", files=TABLE_FILES, texts=texts, people=people)
            body = {"address": table.as_uri(), "text_column": "said", "contributor_column": "who"}
            answer = client.post(f"projects/{slug}/tables", json=body)
            if answer is None:
                continue
            if answer.status_code != 202:
                self._refused("table", answer)
                continue
            self.seen.uploads.append({"dataset": answer.json()["id"], "rows": len(texts)})

    def _send(self, name: str, client: Client, rng: random.Random) -> None:
        slug = self._places[name]["slug"]
        while not self._enough.wait(BETWEEN_POSTS_SECONDS * rng.uniform(0.5, 1.5)):
            records = streaming.rows(rng.randint(1, 12), seed=rng.randrange(10**6))
            answer = client.post(f"projects/{slug}/records", json={"records": records})
            if answer is None:
                continue
            if answer.status_code not in (200, 202):
                self._refused("records", answer)
                continue
            receipt = answer.json()
            self.seen.posts.append({"first": receipt["first_slot"], "records": receipt["accepted"]})

    def _refused(self, what: str, answer: requests.Response) -> None:
        self.seen.refusals[f"{what} {answer.status_code}"] += 1
        if answer.status_code not in EXPECTED_REFUSALS:
            self.seen.unexpected.append(f"{what} {answer.status_code}: {answer.text[:300]}")


def _answer_to(question: dict[str, Any]) -> int:
    if question["text"] is not None:
        return learning.truth_of(question["text"])
    return int(question["fields"]["amount"] > 0)


def _experts_file(rng: random.Random) -> tuple[int, bytes, dict[str, str]]:
    # A row of the public test set, which chance may bring, would have the upload refused.
    public = set(learning.sentences(TESTED_ROWS, seed=TESTED_SEED))
    said = learning.sentences(rng.randint(20, 4000), seed=rng.randrange(10**6))
    texts = [text for text in said if text not in public]
    return len(texts), "\n".join(["text", *texts]).encode(), {"text_column": "text"}


def _crowd_file(rng: random.Random) -> tuple[int, bytes, dict[str, str]]:
    lines = [f"{text},{person}" for text, person in zip(*_said_by_a_crowd(rng), strict=True)]
    form = {"text_column": "text", "contributor_column": "contributor"}
    return len(lines), "\n".join(["text,contributor", *lines]).encode(), form


def _said_by_a_crowd(rng: random.Random) -> tuple[list[str], list[str]]:
    said, speakers = learning.sentences(rng.randint(4, 12), seed=rng.randrange(10**6)), 40
    people = [f"person {number}" for number in range(len(said) * speakers)]
    return [text for text in said for _ in range(speakers)], people
