"""Answer and next question over HTTP, by 1, 8 and 32 annotators, beside a raw SKIP LOCKED loop and Label Studio.

Run: python benchmarks/label_loop.py [--queue N] [--seconds S] [--overlap K] [--classes N]
    [--label-studio-python PATH] [--json]

Limits: no question reaches more people than its overlap, at most 10 statements a cycle, a queue of 1 M is as fast as
one of 10 k, p95 under 100 ms for 8 people, 20 times Label Studio's distinct items.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._annotators import SUBMIT, Annotator, Result, at_once
from benchmarks._embedded import own_site
from benchmarks._label_studio import LabelStudio

PEOPLE = 32
WARM_UP_SECONDS = 2.0
LEVELS = (1, 8, 32)
STATEMENTS_LIMIT = 10
P95_LIMIT_MS = 100.0
PEER_FACTOR = 20.0


def class_names(number: int) -> list[str]:
    return [f"class {place}" for place in range(1, number + 1)]


def fill(queue_length: int, overlap: int, classes: int) -> tuple[str, list[str]]:
    """Store a project with open questions and the sessions of its annotators; return its page and the sessions."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.auth.models import User
    from django.db import connection
    from django.urls import reverse

    from annotation.models import Dataset, Job, Membership, Role
    from annotation.projects.services import opening
    from dpal_site.accounts.logins import SessionStore
    from dpal_site.operations.preparation import as_owner

    run = User.objects.count()
    people = [User.objects.create_user(f"annotator-{run}-{n}") for n in range(PEOPLE)]
    project = opening.create_project(
        name=f"Bench {run}",
        preset="pool-experts",
        owner=people[0],
        data_kind="text",
        classes=class_names(classes),
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
    # The site's role makes no tables, and may gather no statistics of those it does not own.
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS bench_queue (id bigint PRIMARY KEY, priority bigint, done boolean)")
        cursor.execute("CREATE TABLE IF NOT EXISTS bench_label (queue_id bigint, choice smallint)")
        cursor.execute("CREATE INDEX IF NOT EXISTS bench_next ON bench_queue (priority, id) WHERE NOT done")
        cursor.execute("VACUUM ANALYZE")
    sessions = []
    for user in people:
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = "dpal_site.accounts.logins.ByUserName"
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.create()
        sessions.append(session.secret)
    return reverse("annotation:label", args=(project.slug,)), sessions


def fill_raw(queue_length: int) -> None:
    """Fill the raw loop's queue anew: it empties a short one within seconds."""
    from django.db import connection

    from dpal_site.operations.preparation import as_owner

    with as_owner(), connection.cursor() as cursor:
        cursor.execute("TRUNCATE bench_queue, bench_label")
        length = max(queue_length, RAW_ROWS)
        cursor.execute("INSERT INTO bench_queue SELECT n, n, false FROM generate_series(1, %s) n", [length])
        cursor.execute("VACUUM ANALYZE bench_queue")


def statements_per_cycle(page: str, session: str) -> int:
    """Count what one answer and the next question ask of the database, BEGIN and COMMIT among them."""
    from django.conf import settings
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(SERVER_NAME="127.0.0.1")
    client.cookies[settings.SESSION_COOKIE_NAME] = session
    submit = SUBMIT.search(client.get(page).content)
    assert submit is not None
    with CaptureQueriesContext(connection) as statements:
        answered = client.post(submit.group(1).decode(), {"choice": 0}, HTTP_HX_REQUEST="true")
    assert SUBMIT.search(answered.content), "no next question"
    return len(statements)


def raw_step(_: int) -> Callable[[], bool]:
    import psycopg

    own = psycopg.connect(**owners_database())

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


RAW_ROWS = 100_000
PSYCOPG_KEYS = ("dbname", "user", "password", "host", "port", "sslmode")


def owners_database() -> dict[str, Any]:
    from django.db import connection

    from dpal_site.operations.preparation import as_owner

    with as_owner():
        parameters = connection.get_connection_params()
    return {key: value for key, value in parameters.items() if key in PSYCOPG_KEYS}


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


def measure(
    folder: Path, queue_length: int, seconds: float, overlap: int, classes: int, studio_python: Path | None
) -> dict[str, Any]:
    """Fill, run every level over HTTP, raw and through Label Studio, and count what must be 0."""
    from dpal_site.embedded import host
    from dpal_site.embedded.processes import Supervisor

    page, sessions = fill(queue_length, overlap, classes)
    found: dict[str, Any] = {
        "queue": queue_length,
        "overlap": overlap,
        "classes": classes,
        "load_before": os.getloadavg()[0],
    }
    found["statements"] = statements_per_cycle(page, sessions[0])
    over_http: list[Result] = []
    raw: list[Result] = []
    peers: list[dict[str, float]] = []
    studio = None if studio_python is None else LabelStudio(studio_python, folder, owners_database(), host.free_port())
    with ExitStack() as open_things:
        if studio is not None:
            open_things.callback(studio.stop)
            studio.start(PEOPLE, queue_length, class_names(classes))
            found["label_studio_version"] = studio.version
        site = open_things.enter_context(Supervisor(folder / "log"))
        address = site.start_web(host.free_port(), workers=2).removeprefix("http://")
        site.wait_until_ready()
        browsers = [Annotator(address, session, page) for session in sessions]
        warm_up(browsers, studio)
        for level in LEVELS:
            over_http.append(at_once(level, seconds, lambda n: browsers[n].back_at_work()))
            fill_raw(queue_length)
            raw.append(at_once(level, seconds, raw_step))
            if studio is not None:
                peers.append(peer_level(studio, level, seconds))
        found["over_overlap"] = over_overlap()
    found["load_after"] = os.getloadavg()[0]
    return found | {
        "http": [asdict(result) for result in over_http],
        "raw": [asdict(result) for result in raw],
        "label_studio": peers,
    }


def warm_up(browsers: list[Annotator], studio: LabelStudio | None) -> None:
    """Let both sites open their connections, and their databases learn what the tables hold by now.

    Autovacuum tells them within a minute; a run that is over by then would measure plans for empty tables.
    """
    from django.db import connection

    from dpal_site.operations.preparation import as_owner

    at_once(8, WARM_UP_SECONDS, lambda n: browsers[n].back_at_work())
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    if studio is not None:
        at_once(8, WARM_UP_SECONDS, studio.step_of)
        studio.analyze()


def peer_level(studio: LabelStudio, level: int, seconds: float) -> dict[str, float]:
    """Let Label Studio's people work, and count the distinct tasks they labelled."""
    before = studio.distinct_labelled()
    result = at_once(level, seconds, studio.step_of)
    distinct = (studio.distinct_labelled() - before) / result.seconds
    return asdict(result) | {"items_per_second": distinct, "answers_per_second": result.items_per_second}


def broken_limits(found: dict[str, Any]) -> list[str]:
    broken = []
    if found["over_overlap"]:
        broken.append(f"{found['over_overlap']} questions reached too many people")
    if found["statements"] > STATEMENTS_LIMIT:
        broken.append(f"{found['statements']} statements a cycle")
    slow = found["http"][LEVELS.index(8)]["p95_ms"]
    if slow >= P95_LIMIT_MS:
        broken.append(f"p95 of {slow:.0f} ms with 8 people")
    for ours, peer in zip(found["http"], found["label_studio"], strict=False):
        factor = ours["items_per_second"] / peer["items_per_second"]
        if factor < PEER_FACTOR:
            broken.append(f"{factor:.1f} times Label Studio with {ours['annotators']} people")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queue", type=int, default=10_000, help="open questions; try 1000000; default 10000")
    parser.add_argument("--seconds", type=float, default=4.0, help="seconds a level; default 4")
    parser.add_argument("--overlap", type=int, default=1, help="people each question goes to; default 1")
    parser.add_argument("--classes", type=int, default=2, help="classes to choose from; try 60; default 2")
    parser.add_argument("--label-studio-python", type=Path, help="Python of an environment with Label Studio")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    options = parser.parse_args()
    with own_site("dpal-bench-", LOG_LEVEL="WARNING") as folder:
        from dpal_site.operations.preparation import prepare_site

        prepare_site()
        found = measure(
            folder, options.queue, options.seconds, options.overlap, options.classes, options.label_studio_python
        )
    broken = broken_limits(found)
    if options.json:
        print(json.dumps(found | {"broken": broken}, indent=2))
    else:
        print_table(found)
        print("limits kept" if not broken else "limits broken: " + "; ".join(broken))
    return 1 if broken else 0


def print_table(found: dict[str, Any]) -> None:
    print(
        f"queue {found['queue']:,}, overlap {found['overlap']}, {found['classes']} classes, 2 web workers, "
        f"{os.cpu_count()} cores, load {found['load_before']:.1f} before and {found['load_after']:.1f} after"
    )
    head = f"{'annotators':>10} {'items/s':>9} {'p50 ms':>8} {'p95 ms':>8} {'raw/s':>9} {'raw / ours':>11}"
    print(head + (f" {'Label Studio/s':>15} {'ours / theirs':>14}" if found["label_studio"] else ""))
    for place, (ours, raw) in enumerate(zip(found["http"], found["raw"], strict=True)):
        line = (
            f"{ours['annotators']:>10} {ours['items_per_second']:>9.1f} {ours['p50_ms']:>8.1f} "
            f"{ours['p95_ms']:>8.1f} {raw['items_per_second']:>9.1f} "
            f"{raw['items_per_second'] / ours['items_per_second']:>11.1f}"
        )
        if found["label_studio"]:
            peer = found["label_studio"][place]["items_per_second"]
            line += f" {peer:>15.1f} {ours['items_per_second'] / peer:>14.1f}"
        print(line)
    print(f"statements a cycle: {found['statements']}")
    print(f"questions that reached too many people: {found['over_overlap']}")
    if found["label_studio"]:
        print(f"Label Studio {found['label_studio_version']}")


if __name__ == "__main__":
    sys.exit(main())
