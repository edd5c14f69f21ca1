"""Somebody attacks a site while another person labels: what came of it, and what that person noticed.

Each attack runs for `SECONDS` or to its end, by `ATTACKERS` clients of one person who pause after each answer. Another
person labels meanwhile, and the age of the light queue's heartbeat is read. Both must stay within twice what they were
without the attack a moment before; below `FLOOR_MS` and `FLOOR_SECONDS` a difference is the machine's, where clients,
attackers and site share the cores.
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
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
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
SECONDS = 12
QUIET_SECONDS = 5
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
    """Steps that `ATTACKERS` threads repeat until time is over, or take to their end where they are `once`."""

    name: str
    steps: Iterable[Step]
    expected: str = ANSWERED
    once: bool = False
    # What came of it, where the steps do not see that themselves.
    result: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True)
class Noticed:
    p95_ms: float
    heartbeat_seconds: float


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


def label_meanwhile(annotator: Annotator, attack: Attack, seconds: float) -> tuple[Counter[str], Noticed]:
    over, lock, said = threading.Event(), threading.Lock(), Counter[str]()
    steps = iter(attack.steps if attack.once else itertools.cycle(attack.steps))

    def work() -> None:
        while not over.is_set():
            with lock:
                step = next(steps, None)
            if step is None:
                return
            try:
                found = step()
            except Exception as error:  # noqa: BLE001 - no answer is what an attack wants
                found = type(error).__name__
            with lock:
                said[found] += 1
            over.wait(0 if attack.once else REST_SECONDS)

    threads = [threading.Thread(target=work) for _ in range(ATTACKERS)]
    for thread in threads:
        thread.start()
    timings, ages, end = [], [], time.monotonic() + seconds
    try:
        while time.monotonic() < end or (attack.once and any(thread.is_alive() for thread in threads)):
            began = time.perf_counter()
            try:
                assert annotator.answer(), "nothing was left to answer"
            except OSError:
                timings.append(float("inf"))
                break
            timings.append(1000 * (time.perf_counter() - began))
            age = checks.ages()["light"]
            ages.append(age.total_seconds() if age else float("inf"))
            time.sleep(PAUSE_SECONDS)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    return said, Noticed(sorted(timings)[int(0.95 * (len(timings) - 1))], max(ages))


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


def matrix(place: str) -> Iterator[Step]:
    scene = Scene()
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


def waits(seconds: float = 0.5) -> list[Step]:
    def step() -> str:
        time.sleep(seconds)
        return "200"

    return [step]


def attacks(site: Any, place: str, receiver: Any, bait: socket.socket, tmp_path: Any) -> Iterator[Attack]:
    attacker = make_user("attacker")
    program, manager = Visitor.program(place, attacker), Visitor.signed_in(place, browser_of(attacker))
    text, images = learning.open_trusted(attacker), learning.open_images(attacker)
    yield Attack("authorisation matrix", list(matrix(place)), "as the table of permissions says", once=True)
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
    inside = [listen(make_project(), f"https://{name}/", 1) for name in site.inside]
    yield Attack("webhooks to the inside", waits(), "200", result=partial(refused, inside, bait))
    for name in (DRIPS, SILENT):
        for _ in range(10):
            listen(text, f"https://{receiver.name}{name}", MESSAGES // 10)
    yield Attack(f"{2 * MESSAGES:,} webhooks to drips and silence", waits(), "200", result=partial(sent, receiver))
    with slow_senders(site.url) as slow:
        besiege(slow)
        yield Attack("slow senders", waits())
    for _ in range(IDLE_PROJECTS):
        make_project(owner=attacker)
    yield Attack(f"{IDLE_PROJECTS} idle projects", waits())


def registering(place: str, owner: Any, folder: Any) -> Step:
    crowd = learning.open_crowd(owner, privacy_unit="contributor", texts_per_contributor=1)
    program = Visitor.program(place, owner)

    def step() -> str:
        body = {"address": (folder / "lake").as_uri(), "text_column": "said", "contributor_column": "who"}
        answer = program.ask("POST", f"/api/v1/projects/{crowd.slug}/tables", json.dumps(body).encode())
        if answer.status_code != 202:
            return told(answer)
        (found,) = Dataset.objects.filter(project=crowd)
        ended = lambda: Dataset.objects.get(pk=found.pk).job.state == WorkState.FAILED  # noqa: E731
        host.wait_until(ended, 90)
        return f"202: {Dataset.objects.get(pk=found.pk).job.error}"

    return step


def refused(webhooks: list[Webhook], bait: socket.socket) -> str:
    answers = Counter(WebhookDelivery.objects.filter(webhook__in=webhooks).values_list("answer", flat=True))
    with contextlib.suppress(BlockingIOError):
        bait.accept()
        return "500 something was sent to a port of this machine"
    return "; ".join(f"{number} x {answer or 'not yet tried'}" for answer, number in answers.items())


def sent(receiver: Any) -> str:
    return f"{len(receiver.taken)} attempts, {WebhookDelivery.objects.filter(attempts__gt=1).count()} repeated"


def test_nobody_else_notices(site, receiver, bait, tmp_path):
    place = site.url.removeprefix("http://")
    page, sessions = label_loop.fill(QUESTIONS, 1, 2)
    broken = []
    print(f"\n{'attack':<38} {'p95 ms':>6} {'quiet':>6} {'heartbeat s':>11} {'quiet':>6}  what happened")
    for attack, session in zip(attacks(site, place, receiver, bait, tmp_path), itertools.cycle(sessions), strict=False):
        annotator = Annotator(place, session, page)
        _, quiet = label_meanwhile(annotator, Attack("", waits()), QUIET_SECONDS)
        said, noticed = label_meanwhile(annotator, attack, SECONDS)
        annotator.back_at_work()  # which closes its connection
        what = attack.result() if attack.result else ", ".join(f"{n} x {one}" for one, n in said.most_common(4))
        numbers = f"{noticed.p95_ms:>6.0f} {quiet.p95_ms:>6.0f} {noticed.heartbeat_seconds:>11.1f} "
        print(f"{attack.name:<38} {numbers}{quiet.heartbeat_seconds:>6.1f}  {what}", flush=True)
        tried = said or ["nothing was tried"]
        broken += [f"{attack.name}: {one}" for one in tried if not re.fullmatch(attack.expected, one, re.DOTALL)]
        if noticed.p95_ms > max(2 * quiet.p95_ms, FLOOR_MS):
            broken.append(f"{attack.name}: labels took {noticed.p95_ms:.0f} ms at p95")
        if noticed.heartbeat_seconds > max(2 * quiet.heartbeat_seconds, FLOOR_SECONDS):
            broken.append(f"{attack.name}: the light queue was silent for {noticed.heartbeat_seconds:.0f} s")
    assert not broken, "\n".join(broken)
