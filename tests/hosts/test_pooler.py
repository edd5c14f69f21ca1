import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
from django.db import connection, connections

from annotation.data.services.label_files import export_labels
from annotation.models import Project, Record, database
from annotation.models.database import hold_lock as hold
from annotation.work.services import history
from dpal_site.embedded import host
from dpal_site.embedded.database_address import parse_database_url, through_pooler
from learner.models import ModelRelease
from tests.factories import make_project, open_records
from tests.faults.storm import stage, verdict
from tests.faults.storm.load import Load
from tests.faults.test_storm import SEED, borrowed, judged, told, unfinished
from tests.hosts.pooler import WEB_SECONDS

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]
__all__ = ["borrowed"]
LOOP_SECONDS = 300
HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s"


@pytest.fixture
def pooled(pooler, monkeypatch):
    """Have every thread but ours reach the database through the pooler; ours keeps its own session."""
    assert connection.ensure_connection() is None
    address = through_pooler(parse_database_url(pooler.url))
    monkeypatch.setitem(connections.settings, "default", connections.settings["default"] | address)


class Person:
    def __init__(self):
        self._pool = ThreadPoolExecutor(1)

    def does(self, what, *given, **named):
        return self._pool.submit(what, *given, **named).result(60)

    def begins(self, what, *given):
        return self._pool.submit(what, *given)

    def leaves(self):
        self.does(connections.close_all)
        self._pool.shutdown()


@pytest.fixture
def people():
    with ExitStack() as stack:
        found = [Person() for _ in range(3)]
        for person in found:
            stack.callback(person.leaves)
        yield found


@contextmanager
def acting_in_the_session(name):
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('dpal.actor', %s, false)", [name])
        yield
        cursor.execute("SELECT set_config('dpal.actor', '', false)")


def changers(people, acting):
    """Let two people's requests cross, and a program change something as well; return who changed what, by name."""
    ada, grace, program = people
    projects = {name: make_project() for name in ("ada", "grace", "")}
    blocks = {name: acting(name) for name in ("ada", "grace")}

    def change(name, question):
        project = Project.objects.get(pk=projects[name].pk)
        project.question = question
        project.save(update_fields=["question"])

    ada.does(blocks["ada"].__enter__)
    grace.does(blocks["grace"].__enter__)
    for round_ in range(3):
        for person, name in ((ada, "ada"), (program, ""), (grace, "grace")):
            person.does(change, name, f"Question {round_}?")
    ada.does(blocks["ada"].__exit__, None, None, None)
    program.does(change, "", "And now?")
    grace.does(blocks["grace"].__exit__, None, None, None)
    for person, name in ((ada, "ada"), (grace, "grace")):
        person.does(change, name, "Nobody says who?")
    return {
        name: list(project.changes.order_by("pk").values_list("actor", flat=True)) for name, project in projects.items()
    }


RIGHT = {"ada": ["ada"] * 3 + [""], "grace": ["grace"] * 3 + [""], "": [""] * 4}


def test_a_change_is_noted_as_the_one_of_who_made_it(pooled, people):
    assert changers(people, history.acting) == RIGHT


def test_a_name_given_to_the_session_would_become_somebody_elses(pooled, people):
    assert changers(people, acting_in_the_session) != RIGHT


def test_a_name_ends_with_a_transaction_that_fails(pooled, people):
    def fail():
        with history.acting("ada"), connection.cursor() as cursor:
            cursor.execute("UPDATE annotation_project SET slug = NULL")

    def name_of_the_session():
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('dpal.actor', true)")
            return cursor.fetchone()[0]

    make_project()
    with pytest.raises(Exception, match="null value"):
        people[0].does(fail)
    assert not people[0].does(name_of_the_session)


def read_by_turns(people, project):
    records = people[0].does(
        lambda: Record.objects.filter(dataset__project=project).order_by("pk").iterator(chunk_size=2)
    )
    found = []
    while record := people[0].does(next, records, None):
        found.append(record.pk)
        for other in people[1:]:
            other.does(Project.objects.count)
    return found


def test_rows_read_piece_by_piece_are_all_there(pooled, people):
    project = make_project()
    open_records(project, 9)
    wanted = list(Record.objects.order_by("pk").values_list("pk", flat=True))
    assert read_by_turns(people, project) == wanted
    assert people[0].does(lambda: b"".join(export_labels(project=project, format="jsonl"))) == b""


def test_a_cursor_of_the_session_would_be_lost(pooler):
    """What Django declares outside a transaction, and why no cursor is declared behind a pooler."""
    with psycopg.connect(pooler.url, autocommit=True) as reader, psycopg.connect(pooler.url) as other:
        reader.execute("DECLARE kept CURSOR WITH HOLD FOR SELECT generate_series(1, 9)")
        # Sessions are lent last in, first out: this transaction now has the one with the cursor.
        other.execute("SELECT 1")
        with pytest.raises(psycopg.errors.InvalidCursorName):
            reader.execute("FETCH 2 FROM kept")
        other.execute("CLOSE kept")


def test_one_worker_at_a_time_whichever_sessions_they_are_lent(pooled, people, monkeypatch):
    monkeypatch.setattr(database, "PAUSE_SECONDS", 0.01)
    inside, go_on = threading.Event(), threading.Event()
    order = []

    def first():
        with hold(kind=77, number=1):
            inside.set()
            assert go_on.wait(60)
            order.append("first")

    def second():
        with hold(kind=77, number=1):
            order.append("second")

    def third():
        with hold(kind=77, number=2):
            order.append("another number")

    def held():
        with connection.cursor() as cursor:
            cursor.execute(HELD, [77])
            return cursor.fetchone()[0]

    begun = people[0].begins(first)
    assert inside.wait(60)
    waiting = people[1].begins(second)
    # Who waits leaves a session for whoever works; other numbers are free.
    people[2].does(third)
    assert held() == 1
    assert not waiting.done()
    go_on.set()
    begun.result(60)
    waiting.result(60)
    assert order == ["another number", "first", "second"]
    assert held() == 0


def test_pages_have_a_time_limit_and_workers_have_none(pooler):
    query = f"SELECT pg_sleep({WEB_SECONDS + 1})"
    with psycopg.connect(pooler.web_url) as page, pytest.raises(psycopg.errors.QueryCanceled):
        page.execute(query)
    with psycopg.connect(pooler.url) as worker:
        worker.execute(query)


@pytest.mark.slow
@pytest.mark.hosts
def test_a_site_runs_its_loop_through_two_sessions(borrowed, pooler):
    environment = borrowed.processes._environment
    environment |= {"DATABASE_URL": pooler.url, "DATABASE_POOLER": "transaction"}
    load_of = stage.open_projects(annotators=2)
    borrowed.start_all(host.free_port())
    load = Load(borrowed.url, load_of, SEED)
    load.start()
    assert host.wait_until(ModelRelease.objects.exists, LOOP_SECONDS, 0.5), load.seen
    load.stop(LOOP_SECONDS)
    assert host.wait_until(lambda: not unfinished(borrowed), LOOP_SECONDS, 0.5), unfinished(borrowed)
    borrowed.processes.check_running()
    told(load, [], judged(borrowed, lambda: verdict.judge(load.told())))
