"""Two sites that differ in one private row or one answer, and draw the same: what can be read there, word by word.

Whatever a mechanism releases may differ between the two, by as much as its price says; any output of one is possible on
the other. So the second site is given the outputs of the first, each where the mechanism hands it over, and then
*everything* that others than managers read must be the same: what is not is computed from a row or an answer.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import combinations, repeat
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.urls import get_resolver, reverse

from annotation.models import Project
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from learner.models import ModelRelease
from learner.releases import canaries as canary
from learner.releases.services import checks
from learner.rounds.services import loop, streams, training
from privacy.gate.kanonymity import KAnonymityGate
from privacy.ledger.auditor.merkle import leaf_hash, root_of
from privacy.ledger.auditor.statement import SIGNED_BEFORE
from privacy.ledger.models import LedgerEntry
from privacy.mechanisms.randomized_response import RandomizedResponse
from privacy.mechanisms.randomness import SecureRandom
from tests.counting import begin_over
from tests.observing import body_of
from tests.owning import as_owner
from tests.permission_rows import BODIES, PAGES, ROUTES
from tests.permission_scene import PEOPLE, api_routes, named_patterns

# Where a mechanism hands over what it releases: whoever adds one adds its place.
HANDED_OVER = ((loop, "_choose"), (training, "_fit"), (KAnonymityGate, "conclude"), (RandomizedResponse, "release"))
# What each look draws anew, and clocks; those are seconds, which the table calls bookkeeping.
DRAWN = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?"), "a time"),
    (re.compile(r"\b17\d{14}\b"), "a time"),
    (re.compile(r"\b\d{2}/\d{2}/\d{4},? \d+(:\d\d)? [ap]\.m\."), "a time"),
    (re.compile(r"\b[A-Z][a-z]+\.? \d+, \d{4}(, (\d+(:\d\d)? [ap]\.m\.|noon|midnight))?"), "a time"),
    (re.compile(r"\b\d{1,2}:\d\d(:\d\d)?\b"), "a time"),
    (re.compile(r'"sig": "[A-Za-z0-9+/=]+"'), "a signature"),
    (re.compile(r"[A-Za-z0-9+/]{86}==|[A-Za-z0-9+/]{91}="), "a signature"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}"), "an id"),
    (re.compile(r"\b(?![0-9a-f]{64}\b)[A-Za-z0-9]{64}\b"), "a token"),
    (re.compile(r"\d+(?:\.\d)? s on average"), "a pace"),
    # A chart on a page draws the numbers of the table beside it, which is compared, over times as they are.
    (re.compile(r'<figure class="chart".*?</svg>', re.DOTALL), "a chart"),
)
# Plots draw the numbers of tables that are read, with times of today on their axes; files are read by REST.
READ_ELSEWHERE = ("learner:dashboard_plot", "learner:accuracy_plot", "learner:measure_plot", "learner:release_file")
OF_THE_LOOK = {"Set-Cookie", "X-Request-ID", "Content-Length", "Expires", "Last-Modified", "Date"}
CANARIES: dict[str, Any] = {}
SEQUENCES = "SELECT schemaname || '.' || sequencename, last_value FROM pg_sequences"
BACK = "SELECT setval(%s, coalesce(%s, 1), %s)"


@dataclass(frozen=True, slots=True)
class Seen:
    """What one person got at one address."""

    status: int
    headers: dict[str, str]
    body: str


Sight = dict[tuple[str, str], Seen]


@dataclass
class Draws:
    """What the first of two sites drew, for the second to draw again."""

    outputs: dict[tuple[str, int], Any] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)
    seed: int = 0
    generator: np.random.Generator = field(default_factory=np.random.default_rng)

    def begin(self, *, seed: int) -> None:
        """Start over on the next site."""
        self.turns.clear()
        self.seed, self.generator = seed, np.random.default_rng(seed)

    def handing_over(self, name: str, made: Callable[..., Any]) -> Callable[..., Any]:
        """Return a mechanism's last step, which hands over what it did on the first site."""

        def handed(*args: Any, **options: Any) -> Any:
            drawn = made(*args, **options)
            turn = self.turns[name] = self.turns.get(name, 0) + 1
            # How many words a mechanism takes may depend on what it reads; what comes after it draws afresh.
            self.generator = np.random.default_rng([self.seed, turn])
            if isinstance(drawn, tuple):
                # What was read, which is this site's own, and what was released.
                return *drawn[:-1], self.outputs.setdefault((name, turn), drawn[-1])
            return self.outputs.setdefault((name, turn), drawn)

        return handed

    def learning(self, learn: Callable[..., None]) -> Callable[..., None]:
        """Return a stream's update, which leaves its learner where that of the first site was."""

        def learned(project: Project, learner: Any, *given: Any) -> None:
            learn(project, learner, *given)
            learner.resume(self.handing_over("_learn", learner.state)())

        return learned

    def heard(self, estimator: Any, **options: Any) -> Any:
        """Send a canary once for each estimator: it reads nothing of the site."""
        key = canary.fingerprint(estimator, code="", trials=options["trials"])
        if key not in CANARIES:
            CANARIES[key] = canary.send_canary(estimator, **options)
        return CANARIES[key]


@contextmanager
def drawing(draws: Draws) -> Iterator[None]:
    """Have every site draw what the first one drew."""
    with pytest.MonkeyPatch.context() as patch:
        for place, name in HANDED_OVER:
            patch.setattr(place, name, draws.handing_over(name, getattr(place, name)))
        patch.setattr(streams, "_learn", draws.learning(streams._learn))
        patch.setattr(checks, "send_canary", draws.heard)
        patch.setattr(SecureRandom, "words", lambda source, count: draws.generator.bit_generator.random_raw(count))
        patch.setattr("celery.app.base.Celery.send_task", lambda app, name, *args, **kwargs: None)
        # One name for all of them.
        patch.setattr("tests.learning._numbers", repeat(1))
        patch.setattr("tests.streaming._numbers", repeat(1))
        # Another thread sees no row of a site that is one open transaction.
        patch.setattr("annotation.work.services.attempts.Lease._keep", lambda lease: None)
        yield


@contextmanager
def a_site() -> Iterator[None]:
    """Undo whatever happens inside, and give the next site the same numbers of rows."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(SEQUENCES)
        before = cursor.fetchall()
    outer = transaction.atomic()
    # As Django's own test case marks its transaction: what must be durable may run inside, and be undone.
    outer._from_testcase = True  # type: ignore[attr-defined]
    with outer:
        yield
        transaction.set_rollback(True)
    with as_owner(), connection.cursor() as cursor:
        for name, last in before:
            cursor.execute(BACK, [name, last, last is not None])
    # The counter outside the database saw what was undone, and would take it for an old copy.
    begin_over()


class Eyes:
    """People who look at a project, each with a browser and a program, logged in before the sites part."""

    def __init__(self, people: dict[str, User]) -> None:
        self.people = people
        self.browsers = {name: Client(raise_request_exception=False) for name in people}
        self.programs = {}
        for name, person in people.items():
            self.browsers[name].force_login(person)
            _token, secret = tokens.create_token(
                user=person, name="all", scopes=list(Scope), lifetime=timedelta(days=1)
            )
            headers = {"Authorization": f"Bearer {secret}"}
            self.programs[name] = Client(raise_request_exception=False, headers=headers)

    def look(self, project: Project, *people: str, at: str = "") -> Sight:
        """Return all that people read of a project at the addresses with `at` in them, without what each look draws."""
        known, found = known_digests(project), {}
        for person in people:
            role = person if person in PEOPLE else "annotator"
            for method, address in addresses_of(project, role):
                if at not in address:
                    continue
                client = (self.programs if address.startswith("/api/") else self.browsers)[person]
                with transaction.atomic():
                    response = asked(client, method, address)
                    # A file is read as far as the transaction, which is taken back, reaches.
                    body = body_of(response).decode("latin-1")
                    transaction.set_rollback(True)
                # The last line of a statement hashes all before it, clocks included.
                written = hashlib.sha256(body.encode("latin-1").rpartition(SIGNED_BEFORE)[0]).hexdigest()
                known[written] = f"digest of {address}"
                headers = {name: value for name, value in response.headers.items() if name not in OF_THE_LOOK}
                found[person, f"{method} {address}"] = Seen(
                    response.status_code,
                    {name: without_clocks(value, known) for name, value in headers.items()},
                    without_clocks(body, known),
                )
        return found


def asked(client: Client, method: str, address: str) -> Any:
    name = address.rpartition("/")[2]
    body = BODIES.get("predict", {}) if name == "predict" else {}
    return client.generic(method, address, json.dumps(body), content_type="application/json")


def addresses_of(project: Project, role: str) -> list[tuple[str, str]]:
    """Return every page and route that lets in a role and that a project's own numbers complete."""
    releases = ModelRelease.objects.filter(project=project).order_by("version")
    options: dict[str, list[Any]] = {
        "slug": [project.slug],
        "version": [str(release.version) for release in releases],
        "format": ["csv"],
        "name": ["spending", "purposes", "releases"],
    }
    files = sorted(releases[0].digests) if releases else []
    patterns = dict(named_patterns(get_resolver().url_patterns))
    wanted = [("GET", name, row) for name, row in PAGES.items() if name not in READ_ELSEWHERE]
    wanted += [(method, f"api:{name}", ROUTES[name][0]) for name, method in api_routes()]
    found = []
    for method, name, row in wanted:
        arguments = patterns[name].pattern.converters
        own = options | ({"name": files} if "version" in arguments else {})
        looks = method == "GET" or name in ("api:claim_assignment", "api:claim_batch", "api:predict")
        if looks and row[PEOPLE.index(role)] == "+" and arguments.keys() <= own.keys():
            found += [(method, reverse(name, kwargs=each)) for each in every({key: own[key] for key in arguments})]
    return found


def every(options: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield every choice of one value for each name."""
    if not options:
        yield {}
        return
    name, *others = options
    for rest in every({each: options[each] for each in others}):
        for value in options[name]:
            yield {name: value} | rest


def known_digests(project: Project) -> dict[str, str]:
    """Return what follows the clock through a hash: the ledger's chain and tree, files with a day or a head."""
    accounts = [one for one in (project.pool_account_id, project.labels_account_id) if one is not None]
    entries = LedgerEntry.objects.filter(account__in=accounts)
    found = {entry.hash: f"hash of {entry.account_id}:{entry.sequence}" for entry in entries}
    for account in accounts:
        leaves = [leaf_hash(bytes.fromhex(each.hash)) for each in entries.filter(account=account).order_by("sequence")]
        for first, last in combinations(range(len(leaves) + 1), 2):
            node = b64encode(root_of(leaves[first:last])).decode()
            found[node] = f"hash of {account}:{first + 1}-{last}"
    # The first of several versions names what all of them have.
    for release in ModelRelease.objects.filter(project=project).order_by("-version"):
        found |= {digest: f"digest of {release.version}/{name}" for name, digest in release.digests.items()}
        found[release.entry.output_digest] = f"digest of {release.version}"
    return found


def without_clocks(text: str, known: dict[str, str]) -> str:
    """Return a text with clocks and what hangs on them named instead."""
    text = re.sub(r"\b[0-9a-f]{64}\b|[A-Za-z0-9+/]{43}=", lambda match: known.get(match[0], match[0]), text)
    for pattern, name in DRAWN:
        text = pattern.sub(name, text)
    return text


def differing(one: Sight, other: Sight) -> list[str]:
    """Say at which addresses two sites differ, and in what."""
    told = [f"{person} {address}" for person, address in one.keys() ^ other.keys()]
    for person, address in sorted(one.keys() & other.keys()):
        here, there = one[person, address], other[person, address]
        if here == there:
            continue
        pairs = zip(re.split(r"(?<=[>,])", here.body), re.split(r"(?<=[>,])", there.body), strict=False)
        parts = [f"{a[:120]!r} is {b[:120]!r}" for a, b in pairs if a != b]
        told.append(f"{person} {address}: {here.status} {there.status} {' | '.join(parts[:3])}")
    return told
