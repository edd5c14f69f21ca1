"""Everything killed at random under load; what was acknowledged stands afterwards, and the site goes on by itself.

The short storm uses the servers that all tests share. `make faults` gives ten minutes, and `make soak` an hour, to a
site with servers of its own, which are killed, too. The schedule follows a seed, which is printed (DPAL_STORM_SEED
sets it); the processes' own timing does not.
"""

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from dpal_site.embedded import host
from tests.counting import new_counter
from tests.faults.storm import stage, verdict
from tests.faults.storm.clustered import ClusteredSite
from tests.faults.storm.load import Load
from tests.faults.storm.site import LEASE_SECONDS, BorrowedSite, OwnSite
from tests.spark_cluster import needs_spark

pytestmark = pytest.mark.faults
SECONDS = float(os.environ.get("DPAL_STORM_SECONDS", 30))
SEED = int(os.environ.get("DPAL_STORM_SEED", 20_261_121))
PARTS = {"worker": 4, "web": 3, "beat": 1, "broker": 3, "postgres": 2}
SPARK_PARTS = {"executor": 5, "driver": 4, "spark worker": 3}
UNFINISHED = """
SELECT 'job', state, count(*) FROM annotation_job WHERE state IN ('waiting', 'running') GROUP BY state
UNION ALL SELECT 'round', state, count(*) FROM learner_round WHERE state IN ('waiting', 'running') GROUP BY state
UNION ALL
SELECT 'training', state, count(*) FROM learner_trainingrun WHERE state IN ('waiting', 'running') GROUP BY state
UNION ALL SELECT 'upload', 'kept', count(*) FROM annotation_dataset WHERE upload <> ''
UNION ALL SELECT 'release', 'unchecked', count(*) FROM learner_modelrelease WHERE state = 'candidate'
"""


def strike(site: BorrowedSite | OwnSite, part: str, rng: random.Random) -> str:
    dead_for = rng.uniform(0.0, 1.5)
    if isinstance(site, ClusteredSite) and part in SPARK_PARTS:
        part = site.strike_spark(part, dead_for, rng)
    elif part == "postgres":
        site.strike_postgres(dead_for)
    elif part == "broker":
        site.strike_broker(dead_for)
    else:
        how = site.kill_process(part, rng)
        time.sleep(dead_for)
        if how != "child":
            site.processes.restart(part)
        part = f"{part} ({how})"
    return part


def revive(site: BorrowedSite | OwnSite) -> list[str]:
    """Start again what has ended, as `manage.py run` does: a worker that no longer hears its broker ends itself."""
    ended: list[str] = site.processes.ended()
    for name in ended:
        site.processes.restart(name)
    return [f"{name} (by itself)" for name in ended]


def unfinished(site: BorrowedSite | OwnSite) -> list[tuple[str, str, int]]:
    return [row for row in site.ask(UNFINISHED) if row[2]]


def storm(site: BorrowedSite | OwnSite, load: Load, *, seconds: float, first: list[str]) -> list[str]:
    """Strike for a while, `first` in this order, then let the site come to rest; return what was struck."""
    rng = random.Random(SEED)
    struck: list[str] = []
    due = list(first)
    parts = PARTS | SPARK_PARTS if isinstance(site, ClusteredSite) else PARTS

    def comes(wanted: Callable[[], bool], seconds: float = site.patience_seconds) -> bool:
        def come() -> bool:
            struck.extend(revive(site))
            return wanted()

        return host.wait_until(come, seconds, 0.1)

    load.start()
    assert comes(lambda: len(load.seen.labels) > 0), load.seen
    began = time.monotonic()
    while due or time.monotonic() < began + seconds:
        time.sleep(rng.uniform(0.5, 3.0))
        if rng.random() < 0.5:
            # The other half hits a site that is only just coming back.
            answered = len(load.seen.labels)
            comes(lambda answered=answered: len(load.seen.labels) > answered, 30)
        part = due.pop(0) if due else rng.choices(list(parts), weights=list(parts.values()))[0]
        struck += [*revive(site), strike(site, part, rng)]
    # Labels come in again, and everything begun comes to an end.
    answered = len(load.seen.labels)
    assert comes(lambda: len(load.seen.labels) > answered + 5), load.seen
    load.stop(site.patience_seconds)
    assert comes(lambda: not unfinished(site)), unfinished(site)
    site.processes.check_running()
    return struck


def judged(site: BorrowedSite | OwnSite, judge: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Judge the site at rest: what the clock begins meanwhile is waited for, and what is wrong at rest stays wrong."""
    for _ in range(5):
        assert host.wait_until(lambda: not unfinished(site), site.patience_seconds, 0.5), unfinished(site)
        found = judge()
        if not found["wrong"]:
            break
    return found


def told(load: Load, struck: list[str], found: dict[str, Any]) -> None:
    seen = load.seen
    print(json.dumps(found["summary"], indent=1))
    print(f"struck {len(struck)} times: {struck}")
    print(f"answers repeated from memory: {seen.repeats}; tries that failed: {dict(seen.failed_tries)}")
    print(f"refusals: {dict(seen.refusals)}; longest wait for an answer: {seen.slowest_seconds:.1f} s")
    assert not found["wrong"], found["wrong"]
    assert not seen.unexpected, seen.unexpected


@pytest.fixture
def borrowed(monkeypatch, settings, tmp_path, request):
    """Make lost work be taken over soon; the processes read the same from their environment."""
    monkeypatch.setenv("WORK_LEASE_SECONDS", str(LEASE_SECONDS))
    monkeypatch.setenv("LEDGER_COUNTER_PATH", str(tmp_path / "ledger-counter.json"))
    settings.WORK_LEASE_SECONDS = LEASE_SECONDS
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
    request.getfixturevalue("collected_static_files")
    servers = request.getfixturevalue("embedded_servers")
    return BorrowedSite(request.getfixturevalue("supervisor"), servers.owner_url, servers.broker_url)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_what_was_acknowledged_survives_a_short_storm(borrowed):
    print(f"short storm with seed {SEED}")
    load_of = stage.open_projects(annotators=1)
    borrowed.start_all(host.free_port())
    load = Load(borrowed.url, load_of, SEED)
    # Our own session would be ended with the others.
    connections.close_all()
    struck = storm(borrowed, load, seconds=0, first=["worker", "postgres", "broker", "web"])
    told(load, struck, judged(borrowed, lambda: verdict.judge(load.told())))


def long_storm(site: OwnSite, lake: Path | None = None, *, first: list[str]) -> list[str]:
    print(f"storm of {SECONDS:.0f} s with seed {SEED}")
    load_of = json.loads(site.python("-m", "tests.faults.storm.stage").splitlines()[-1])
    site.start_all(site.web_port)
    load = Load(site.url, load_of, SEED, lake)
    struck = storm(site, load, seconds=SECONDS, first=first)
    given = json.dumps(load.told())
    found = judged(
        site, lambda: json.loads(site.python("-m", "tests.faults.storm.verdict", given=given).splitlines()[-1])
    )
    told(load, struck, found)
    return struck


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_long_storm(tmp_path):
    with OwnSite(tmp_path) as site:
        long_storm(site, first=[])


@needs_spark
@pytest.mark.slow
def test_what_was_acknowledged_survives_a_storm_over_a_cluster(tmp_path, cluster):
    """Gates of uploads and of registered tables, counted by executors, whose drivers and workers are struck, too."""
    with ClusteredSite(tmp_path, cluster) as site:
        struck = long_storm(site, site.lake, first=[*SPARK_PARTS, "worker", *SPARK_PARTS])
        assert set(SPARK_PARTS) <= set(struck)
        ((passed,),) = site.ask("SELECT count(*) FROM annotation_gaterun WHERE state = 'committed'")
        print(f"gates that a cluster counted to their end: {passed}")
        assert passed > 1
        # Whatever was struck, nobody still counts for it.
        assert host.wait_until(lambda: not cluster.executors() and not site.drivers(), site.patience_seconds, 0.5)
