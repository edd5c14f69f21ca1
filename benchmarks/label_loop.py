"""Submit a label and get the next question, over HTTP, by 1, 8 and 32 annotators, beside a raw SKIP LOCKED loop.

Run: python benchmarks/label_loop.py [--queue N] [--seconds S] [--overlap K] [--json]

Two web workers, the page's own requests (session, CSRF, HTML of the next question), one embedded database. The raw loop
does what no site can do with less: lock the next row, insert a label, close the row, commit; no person, lease or page.
Limits: no question reaches more people than its overlap, and a queue of 1 M is as fast as one of 10 k.
"""

import argparse
import http.client
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

PEOPLE = 32
LEVELS = (1, 8, 32)
SUBMIT = re.compile(rb'hx-post="(/assignments/[^"]+/submit/)"')
TOKEN = re.compile(rb'name="csrfmiddlewaretoken" value="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Result:
    """How one level of one run went."""

    annotators: int
    items_per_second: float
    p50_ms: float
    p95_ms: float


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
    ordered = sorted(timings)
    p50, p95 = (1000 * ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.95))
    return Result(number, len(ordered) / elapsed, p50, p95)


class Annotator:
    """One person's browser: keeps its connection, its cookies and what the page gave it to send."""

    def __init__(self, host: str, session: str, page: str) -> None:
        self._http = http.client.HTTPConnection(host, timeout=30)
        self._cookies = {"sessionid": session}
        self._read(self._ask("GET", page))

    def answer(self) -> bool:
        """Answer the question shown and take in the next; false when there is none."""
        if self._submit is None:
            return False
        self._read(self._ask("POST", self._submit, f"choice=0&csrfmiddlewaretoken={self._token}"))
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


def fill(queue_length: int, overlap: int) -> tuple[str, list[str]]:
    """Store a project with open questions and the sessions of its annotators; return its page and the sessions."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.auth.models import User
    from django.contrib.sessions.backends.db import SessionStore
    from django.db import connection
    from django.urls import reverse

    from annotation.models import Dataset, Job, Membership, Role
    from annotation.services import projects

    run = User.objects.count()
    people = [User.objects.create_user(f"annotator-{run}-{n}") for n in range(PEOPLE)]
    project = projects.create_project(
        name=f"Bench {run}",
        preset="pool-experts",
        owner=people[0],
        data_kind="text",
        classes=["sport", "music", "other"],
        question="What is this about?",
        overlap=overlap,
        labels_per_release=10**6,
    )
    Membership.objects.bulk_create(Membership(project=project, user=user, role=Role.ANNOTATOR) for user in people)
    job = Job.objects.create(project=project, kind="import")
    dataset = Dataset.objects.create(project=project, job=job, name="pool", state="ready")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO annotation_record (dataset_id, row_number, text)"
            " SELECT %s, n, 'a text to label, number ' || n FROM generate_series(1, %s) n",
            [dataset.pk, queue_length],
        )
        cursor.execute(
            "INSERT INTO annotation_query"
            " (project_id, record_id, state, round_number, priority, overlap, open_slots)"
            " SELECT %s, id, 'open', 1, 1000000000 + row_number, %s, %s FROM annotation_record WHERE dataset_id = %s",
            [project.pk, overlap, overlap, dataset.pk],
        )
        cursor.execute("CREATE TABLE IF NOT EXISTS bench_queue (id bigint PRIMARY KEY, priority bigint, done boolean)")
        cursor.execute("CREATE TABLE IF NOT EXISTS bench_label (queue_id bigint, choice smallint)")
        cursor.execute("CREATE INDEX IF NOT EXISTS bench_next ON bench_queue (priority, id) WHERE NOT done")
        cursor.execute("TRUNCATE bench_queue, bench_label")
        cursor.execute("INSERT INTO bench_queue SELECT n, n, false FROM generate_series(1, %s) n", [queue_length])
        cursor.execute("VACUUM ANALYZE")
    sessions = []
    for user in people:
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.create()
        sessions.append(session.session_key)
    return reverse("annotation:label", args=(project.slug,)), sessions


def raw_step(_: int) -> Callable[[], bool]:
    """Return the least a queue can do for one label, on a connection of its own."""
    import psycopg
    from django.db import connection as django_connection

    parameters = django_connection.get_connection_params()
    own = psycopg.connect(**{key: value for key, value in parameters.items() if key in PSYCOPG_KEYS})

    def step() -> bool:
        with own.transaction(), own.cursor() as cursor:
            cursor.execute(
                "SELECT id FROM bench_queue WHERE NOT done ORDER BY priority, id LIMIT 1 FOR UPDATE SKIP LOCKED"
            )
            row = cursor.fetchone()
            if row is None:
                return False
            cursor.execute("INSERT INTO bench_label VALUES (%s, 0)", row)
            cursor.execute("UPDATE bench_queue SET done = true WHERE id = %s", row)
        return True

    return step


PSYCOPG_KEYS = ("dbname", "user", "password", "host", "port", "sslmode")


def over_overlap() -> int:
    """Count questions that reached more people than they should; 0 or the queue is broken."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT 1 FROM annotation_query q JOIN annotation_assignment a ON a.query_id = q.id"
            " WHERE a.state IN ('leased', 'labelled') GROUP BY q.id HAVING count(*) > q.overlap) over"
        )
        (number,) = cursor.fetchone()
    return int(number)


def measure(folder: Path, queue_length: int, seconds: float, overlap: int) -> dict[str, Any]:
    """Fill, run every level over HTTP and raw, and count what must be 0."""
    from dpal_site.embedded import host
    from dpal_site.embedded.processes import Supervisor

    page, sessions = fill(queue_length, overlap)
    over_http, raw = [], []
    with Supervisor(folder / "log") as site:
        address = site.start_web(host.free_port(), workers=2).removeprefix("http://")
        site.wait_until_ready()
        browsers = [Annotator(address, session, page) for session in sessions]
        at_once(8, 1.0, lambda n: browsers[n].answer)  # lets the workers open their connections
        for level in LEVELS:
            over_http.append(at_once(level, seconds, lambda n: browsers[n].answer))
            raw.append(at_once(level, seconds, raw_step))
        over = over_overlap()
    return {
        "queue": queue_length,
        "overlap": overlap,
        "over_overlap": over,
        "http": [asdict(result) for result in over_http],
        "raw": [asdict(result) for result in raw],
    }


def main() -> int:
    """Print the table; the exit code is 1 if a question reached too many people."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queue", type=int, default=10_000, help="open questions; try 1000000; default 10000")
    parser.add_argument("--seconds", type=float, default=4.0, help="seconds a level; default 4")
    parser.add_argument("--overlap", type=int, default=1, help="people each question goes to; default 1")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dpal-bench-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o711)
        for variable in ("DATABASE_URL", "CELERY_BROKER_URL"):
            os.environ.pop(variable, None)
        os.environ |= {"DPAL_VAR": name, "DJANGO_SETTINGS_MODULE": "dpal_site.settings", "LOG_LEVEL": "WARNING"}
        import django

        django.setup()
        from dpal_site.embedded import servers
        from dpal_site.preparation import prepare_site

        try:
            prepare_site()
            found = measure(folder, options.queue, options.seconds, options.overlap)
        finally:
            servers.stop_started()
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"queue {found['queue']:,}, overlap {found['overlap']}, 2 web workers, {os.cpu_count()} cores")
        print(f"{'annotators':>10} {'items/s':>9} {'p50 ms':>8} {'p95 ms':>8} {'raw/s':>9} {'raw / ours':>11}")
        for ours, raw in zip(found["http"], found["raw"], strict=True):
            print(
                f"{ours['annotators']:>10} {ours['items_per_second']:>9.1f} {ours['p50_ms']:>8.1f} "
                f"{ours['p95_ms']:>8.1f} {raw['items_per_second']:>9.1f} "
                f"{raw['items_per_second'] / ours['items_per_second']:>11.1f}"
            )
        print(f"questions that reached too many people: {found['over_overlap']}")
    return 1 if found["over_overlap"] else 0


if __name__ == "__main__":
    sys.exit(main())
