"""Somebody attacks a site while another person labels: what came of it, and what that person noticed.

Each attack is made in slices by `ATTACKERS` clients of one person who pause after each answer, with quiet slices
between them. Another person labels all the while, and the age of the light queue's heartbeat is read. Under attack both
must stay within twice what they are in the quiet slices, whatever else the machine does; below `FLOOR_MS` and
`FLOOR_SECONDS` a difference is the machine's, where clients, attackers and site share the cores. What exceeds that is
measured again, up to `TRIES` times in a row, until `AGAIN_SECONDS` are spent on that: all takes ten minutes.
"""

import contextlib
import http.client
import itertools
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import get_resolver, reverse

from addons.webhooks.models import Webhook, WebhookDelivery
from annotation.models import Dataset, WorkState
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from benchmarks import label_loop
from benchmarks._annotators import Annotator
from dpal_site.embedded import host
from dpal_site.operations import checks
from tests import bombs, learning
from tests.clients import browser_of
from tests.factories import make_project, make_user
from tests.inside_addresses import INSIDE, MISLEADING
from tests.permission_rows import PAGES, ROUTES
from tests.permission_scene import METHOD_NOT_ALLOWED, PEOPLE, Scene, api_routes, as_letters, named_patterns, outcome
from tests.slow_senders import besiege, slow_senders
from tests.webhook_receiver import DRIPS, SILENT, receiving

pytestmark = [pytest.mark.attack, pytest.mark.faults, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
SLICES, SLICE_SECONDS = 4, 2.5
# Slices of an attack that goes on until all its steps are taken.
ONCE_SECONDS = 10.0
TRIES, AGAIN_SECONDS = 3, 90.0
ATTACKERS = 4
REST_SECONDS = 0.2
PAUSE_SECONDS = 0.05
FLOOR_MS = 250.0
FLOOR_SECONDS = 15.0
QUESTIONS = 20_000
IDLE_PROJECTS = 200
MESSAGES = 1000
RULE = re.compile(r"((?:needs|takes|holds) more than|has [\d,]+ columns|nest)[^<.;]*")
# What a page or route answers that took a request for what it is.
ANSWERED = r"([234]\d\d|503).*"

Step = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Attack:
    """Steps that `ATTACKERS` threads repeat in each slice, or take to their end where they are `once`.

    `state` is entered before an attacked slice and left after it; `result` says what came of it.
    """

    name: str
    steps: Iterable[Step]
    expected: str = ANSWERED
    once: bool = False
    state: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    result: Callable[[], str] | None = None
    slices: int = SLICES


class Noticed:
    """What the person who labels and the light queue noticed in slices of one kind."""

    def __init__(self) -> None:
        self.timings: list[float] = []
        self.ages: list[float] = []

    @property
    def p95_ms(self) -> float:
        return sorted(self.timings)[int(0.95 * (len(self.timings) - 1))]

    @property
    def heartbeat_seconds(self) -> float:
        return max(self.ages)

    def label(self, annotator: Annotator, goes_on: Callable[[], bool]) -> None:
        """Label at least once, however short the slice."""
        while True:
            began = time.perf_counter()
            try:
                assert annotator.answer(), "nothing was left to answer"
            except OSError:
                self.timings.append(float("inf"))
                return
            self.timings.append(1000 * (time.perf_counter() - began))
            age = checks.ages()["light"]
            self.ages.append(age.total_seconds() if age else float("inf"))
            time.sleep(PAUSE_SECONDS)
            if not goes_on():
                return


class Attackers:
    """Threads that take steps between `begin` and `end`."""

    def __init__(self, attack: Attack) -> None:
        self.said: Counter[str] = Counter()
        self._steps = iter(attack.steps if attack.once else itertools.cycle(attack.steps))
        self._lock, self._attacking, self._over = threading.Lock(), threading.Event(), threading.Event()
        self._busy = 0
        self._threads = [threading.Thread(target=self._work) for _ in range(ATTACKERS)]

    def __enter__(self) -> "Attackers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._attacking.set()
        for thread in self._threads:
            thread.join()

    def begin(self) -> None:
        self._attacking.set()

    def end(self) -> None:
        with self._lock:
            self._attacking.clear()

    @property
    def is_busy(self) -> bool:
        with self._lock:
            return self._busy > 0

    @property
    def has_steps(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        try:
            self._take_steps()
        finally:
            connections.close_all()

    def _take_steps(self) -> None:
        while self._attacking.wait() and not self._over.is_set():
            with self._lock:
                if not self._attacking.is_set():
                    continue
                step = next(self._steps, None)
                if step is None:
                    return
                self._busy += 1
            try:
                found = step()
            except Exception as error:  # noqa: BLE001 - no answer is what an attack wants
                found = type(error).__name__
            with self._lock:
                self.said[found] += 1
                self._busy -= 1
            self._over.wait(REST_SECONDS)


class Answer(dict[str, str]):
    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        super().__init__(headers)
        self.status_code, self.body = status, body


@dataclass(frozen=True, slots=True)
class Visitor:
    place: str
    headers: dict[str, str]

    @classmethod
    def signed_in(cls, place: str, client: Any) -> "Visitor":
        cookies = {name: morsel.value for name, morsel in client.cookies.items()} | {"csrftoken": "c" * 32}
        said = "; ".join(f"{name}={value}" for name, value in cookies.items())
        return cls(place, {"Cookie": said, "X-CSRFToken": "c" * 32})

    @classmethod
    def program(cls, place: str, user: Any) -> "Visitor":
        _, secret = tokens.create_token(user=user, name="t", scopes=list(Scope), lifetime=timedelta(days=1))
        return cls(place, {"Authorization": f"Bearer {secret}"})

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Answer:
        with contextlib.closing(http.client.HTTPConnection(self.place, timeout=120)) as connection:
            connection.request(method, path, body, self.headers | ({"Content-Type": kind} if body is not None else {}))
            response = connection.getresponse()
            return Answer(response.status, response.headers.items(), response.read())

    def send(self, path: str, body: bytes) -> Answer:
        return self.ask("POST", path, body, MULTIPART_CONTENT)


def form(**fields: Any) -> bytes:
    return encode_multipart(BOUNDARY, fields)


def for_seconds(seconds: float, attackers: Attackers | None = None) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end and (attackers is None or attackers.has_steps)


def label_meanwhile(annotator: Annotator, attack: Attack) -> tuple[Counter[str], str, Noticed, Noticed]:
    """Return what the attackers were told, what came of it, and what was noticed under attack and in quiet."""
    noticed, quiet, came = Noticed(), Noticed(), ""
    slices = itertools.count() if attack.once else range(attack.slices)
    seconds = SLICE_SECONDS * SLICES / attack.slices
    attacked_seconds = ONCE_SECONDS if attack.once else seconds
    with Attackers(attack) as attackers:
        for _ in slices:
            if not attackers.has_steps:
                break
            quiet.label(annotator, for_seconds(seconds))
            with attack.state():
                attackers.begin()
                noticed.label(annotator, for_seconds(attacked_seconds, attackers))
                attackers.end()
                # The next quiet slice begins once the last answer is there.
                noticed.label(annotator, lambda: attackers.is_busy)
                came = attack.result() if attack.result else ""
    return attackers.said, came, noticed, quiet


def look_at(manager: Visitor, project: Any, name: str, content: bytes) -> Step:
    data = reverse("annotation:data", args=[project.slug])
    fields = {"role": "pool", "bad_rows": "keep_good", "has_header": "on", "look": "1"}
    body = form(file=SimpleUploadedFile(name, content), **fields)
    kept: list[str] = []

    def step() -> str:
        if not kept:
            answer = manager.send(data, body)
            if answer.status_code != 302:
                return told(answer)
            kept.append(answer["Location"])
        return told(manager.ask("GET", kept[0]))

    return step


def send(program: Visitor, path: str, body: bytes) -> str:
    return told(program.send(path, body))


def post(program: Visitor, path: str, body: bytes) -> str:
    return told(program.ask("POST", path, body))


def told(answer: Answer) -> str:
    rule = RULE.search(answer.body.decode(errors="replace"))
    return f"{answer.status_code} {rule[0].strip() if rule else ''}".strip()


def matrix(scene: Scene, place: str) -> Iterator[Step]:
    patterns = dict(named_patterns(get_resolver().url_patterns))
    read = {f"api:{name}": ROUTES[name][0] for name, method in api_routes() if method == "GET"}
    for number, person in enumerate(PEOPLE):
        browser = Visitor.signed_in(place, scene.client(person))
        nobody = person == "anonymous"
        program = Visitor(place, {}) if nobody else Visitor.program(place, scene.people[person])
        for rows, visitor in ((PAGES, browser), (read, program)):
            for name, row in rows.items():
                address = scene.address(name, patterns[name], person)
                yield partial(verdict, visitor, address, name, person, as_letters(row)[number])


def verdict(visitor: Visitor, address: str, name: str, person: str, letters: str) -> str:
    answer = visitor.ask("GET", address)
    if answer.status_code == METHOD_NOT_ALLOWED or (letter := outcome(answer)) in letters:
        return "as the table of permissions says"
    return f"{person} at {name}: {letter} and not {letters}"


@pytest.fixture
def receiver(tmp_path):
    with receiving(tmp_path) as server:
        yield server


@pytest.fixture
def bait():
    with socket.create_server((host.LOOPBACK, 0)) as listening:
        listening.setblocking(False)
        yield listening


@pytest.fixture
def site(supervisor, collected_static_files, receiver, bait, tmp_path):
    # Before there are workers, which would take its steps.
    supervisor.scene = Scene()
    inside = [address for address in INSIDE if ":" not in address and not address.startswith("127.")]
    names = [f"{host.LOOPBACK}:{bait.getsockname()[1]}", *inside]
    supervisor._environment |= {
        "DJANGO_SETTINGS_MODULE": "tests.faults.attacked",
        "ATTACK_RECEIVER": receiver.name,
        "WEBHOOK_HOSTS": ",".join([receiver.name, *names]),
        "WEBHOOK_CA_FILE": str(receiver.certificate),
        "POOL_SOURCES": tmp_path.as_uri(),
    }
    supervisor.start_web(host.free_port(), workers=2)
    supervisor.start_workers(2)
    supervisor.start_beat()
    supervisor.wait_until_ready()
    assert host.wait_until(lambda: checks.ages()["light"] is not None, 120)
    supervisor.inside = names
    return supervisor


def listen(project: Any, url: str, messages: int) -> Webhook:
    webhook = Webhook.objects.create(project=project, url=url, events=["round"], salt=b"salt")
    made = (WebhookDelivery(webhook=webhook, event="round", subject=f"{n}", body="{}") for n in range(messages))
    WebhookDelivery.objects.bulk_create(made)
    return webhook


@contextlib.contextmanager
def listening(made: Callable[[], list[Webhook]]) -> Iterator[None]:
    """Have webhooks with messages during a slice."""
    webhooks = made()
    try:
        yield
    finally:
        Webhook.objects.filter(pk__in=[webhook.pk for webhook in webhooks]).delete()


@contextlib.contextmanager
def besieged(url: str) -> Iterator[None]:
    with slow_senders(url) as slow:
        besiege(slow)
        yield


@contextlib.contextmanager
def idle_projects(owner: Any) -> Iterator[None]:
    for _ in range(IDLE_PROJECTS):
        make_project(owner=owner)
    yield


def waits(seconds: float = 0.5) -> list[Step]:
    def step() -> str:
        time.sleep(seconds)
        return "200"

    return [step]


def attacks(site: Any, place: str, receiver: Any, bait: socket.socket, tmp_path: Any) -> Iterator[Attack]:
    attacker = make_user("attacker")
    program, manager = Visitor.program(place, attacker), Visitor.signed_in(place, browser_of(attacker))
    text, images = learning.open_trusted(attacker), learning.open_images(attacker)
    yield Attack("authorisation matrix", list(matrix(site.scene, place)), "as the table of permissions says", once=True)
    picture = f"/api/v1/projects/{text.slug}/guidelines/pictures"
    for name, scans in (("picture of 40 scans", 40), ("picture of 8 large scans", 8)):
        body = form(file=SimpleUploadedFile("a.jpg", bombs.jpeg_of_scans(scans)), description="a")
        yield Attack(name, [partial(send, program, picture, body)])
    for name, (file, content) in bombs.uploads().items():
        project = images if file.endswith(".zip") else text
        yield Attack(f"upload: {name}", [look_at(manager, project, file, content)])
    bodies = (b"[" * 1_000_000, b'{"a":' * 200_000, b'{"name": ' + b"9" * 1_000_000 + b"}")
    yield Attack("REST: JSON that nests", [partial(post, program, "/api/v1/projects", body) for body in bodies])
    bombs.avro_table(tmp_path / "lake")
    yield Attack("Avro manifest", [registering(place, attacker, tmp_path)], ".*needs more than 384 MiB.*", once=True)
    hooks = f"/api/v1/projects/{text.slug}/webhooks"
    asked = [json.dumps({"url": url, "events": ["round"]}).encode() for url in MISLEADING]
    yield Attack("addresses that mislead", [partial(post, program, hooks, body) for body in asked], "422.*", once=True)
    inside = partial(listening, lambda: [listen(make_project(), f"https://{name}/", 1) for name in site.inside])
    yield Attack("webhooks to the inside", waits(), "200", state=inside, result=partial(refused, bait), slices=1)

    def slow_receivers() -> list[Webhook]:
        names = [name for name in (DRIPS, SILENT) for _ in range(10)]
        return [listen(text, f"https://{receiver.name}{name}", MESSAGES // 10) for name in names]

    slow = partial(listening, slow_receivers)
    told_of = partial(sent, receiver)
    yield Attack(
        f"{2 * MESSAGES:,} webhooks to drips and silence", waits(), "200", state=slow, result=told_of, slices=1
    )
    yield Attack("slow senders", waits(), state=partial(besieged, site.url))
    yield Attack(f"{IDLE_PROJECTS} idle projects", waits(), state=partial(idle_projects, attacker), slices=1)


def registering(place: str, owner: Any, folder: Any) -> Step:
    program = Visitor.program(place, owner)

    def step() -> str:
        crowd = learning.open_crowd(owner, privacy_unit="contributor", texts_per_contributor=1)
        body = {"address": (folder / "lake").as_uri(), "text_column": "said", "contributor_column": "who"}
        answer = program.ask("POST", f"/api/v1/projects/{crowd.slug}/tables", json.dumps(body).encode())
        if answer.status_code != 202:
            return told(answer)
        (found,) = Dataset.objects.filter(project=crowd)
        ended = lambda: Dataset.objects.get(pk=found.pk).job.state == WorkState.FAILED  # noqa: E731
        host.wait_until(ended, 90)
        return f"202: {Dataset.objects.get(pk=found.pk).job.error}"

    return step


def refused(bait: socket.socket) -> str:
    answers = Counter(WebhookDelivery.objects.values_list("answer", flat=True))
    with contextlib.suppress(BlockingIOError):
        bait.accept()
        return "500 something was sent to a port of this machine"
    return "; ".join(f"{number} x {answer or 'not yet tried'}" for answer, number in answers.items())


def sent(receiver: Any) -> str:
    return f"{len(receiver.taken)} attempts, {WebhookDelivery.objects.filter(attempts__gt=1).count()} repeated"


def too_much(noticed: Noticed, quiet: Noticed) -> list[str]:
    found = []
    if noticed.p95_ms > max(2 * quiet.p95_ms, FLOOR_MS):
        found.append(f"labels took {noticed.p95_ms:.0f} ms at p95, {quiet.p95_ms:.0f} in quiet")
    if noticed.heartbeat_seconds > max(2 * quiet.heartbeat_seconds, FLOOR_SECONDS):
        found.append(f"the light queue was silent for {noticed.heartbeat_seconds:.0f} s")
    return found


def test_nobody_else_notices(site, receiver, bait, tmp_path):
    place = site.url.removeprefix("http://")
    page, sessions = label_loop.fill(QUESTIONS, 1, 2)
    broken, again = [], 0.0
    print(f"\n{'attack':<38} {'p95 ms':>6} {'quiet':>6} {'heartbeat s':>11} {'quiet':>6}  what happened")
    for attack, session in zip(attacks(site, place, receiver, bait, tmp_path), itertools.cycle(sessions), strict=False):
        tried: Counter[str] = Counter()
        for attempt in range(TRIES):
            began = time.monotonic()
            annotator = Annotator(place, session, page)
            said, came, noticed, quiet = label_meanwhile(annotator, attack)
            annotator.back_at_work()  # which closes its connection
            what = came or ", ".join(f"{n} x {one}" for one, n in said.most_common(4))
            numbers = f"{noticed.p95_ms:>6.0f} {quiet.p95_ms:>6.0f} {noticed.heartbeat_seconds:>11.1f} "
            print(f"{attack.name:<38} {numbers}{quiet.heartbeat_seconds:>6.1f}  {what}", flush=True)
            tried += said
            again += time.monotonic() - began if attempt else 0.0
            if not (faults := too_much(noticed, quiet)) or again > AGAIN_SECONDS:
                break
        answers = tried or ["nothing was tried"]
        broken += [f"{attack.name}: {one}" for one in answers if not re.fullmatch(attack.expected, one, re.DOTALL)]
        broken += [f"{attack.name}: {fault}" for fault in faults]
    assert not broken, "\n".join(broken)


def test_a_slow_label_and_a_silent_queue_would_be_noticed():
    quiet, slow = Noticed(), Noticed()
    quiet.timings, quiet.ages = [2 * FLOOR_MS] * 20, [FLOOR_SECONDS]
    slow.timings, slow.ages = [4.1 * FLOOR_MS] * 20, [2.1 * FLOOR_SECONDS]
    assert len(too_much(slow, quiet)) == 2
    assert not too_much(quiet, quiet)
