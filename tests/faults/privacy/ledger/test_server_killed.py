import contextlib
import hashlib
import os
import signal
from uuid import uuid4

import psycopg
import pytest

from dpal_site.embedded import host
from dpal_site.embedded.postgres import EmbeddedPostgres

pytestmark = pytest.mark.faults
COST_NANO = 50_001  # 1 / (2 * 100**2) in floats lies just above 50,000 and is charged rounded up
SOME_KEYS = 40

# The step of an operation the server dies at, and what stands afterwards: spent?, settled and stored and published?
STEPS = {
    "before_reserve": ({False}, False),
    "inside_reserve": ({False}, False),
    # Committed and not flushed: either is sound, because nobody has been told.
    "before_flush": ({False, True}, False),
    "before_counter": ({True}, False),
    "after_reserve": ({True}, False),
    "after_read": ({True}, False),
    "after_draw": ({True}, False),
    "after_output": ({True}, False),
    "inside_commit": ({True}, False),
    "commit:before_counter": ({True}, True),
    "before_publish": ({True}, True),
    "after_publish": ({True}, True),
}


def kill(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.url()) as connection:
        backends = [pid for (pid,) in connection.execute("SELECT pid FROM pg_stat_activity").fetchall()]
    for pid in (server.pid, *backends):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert host.wait_until(lambda: server.status == "stopped", 120, poll_seconds=0.01)


@pytest.mark.slow
def test_every_reservation_that_came_back_stands(durable, tmp_path):
    server, processes = durable
    processes.run("open_account", scope="spent")
    keys = tmp_path / "keys"
    keys.touch()
    spender = processes.start("spend", scope="spent", keys=str(keys))
    assert host.wait_until(lambda: len(keys.read_text().split()) >= SOME_KEYS, 120, poll_seconds=0.002)
    kill(server)
    server.start()
    assert processes.wait(spender)[0] == 0
    found = processes.run("report", scope="spent")
    returned, standing = set(keys.read_text().split()), set(found["keys"])
    # Each of four threads may have lost the answer to one reservation that stands; nothing else may differ.
    assert returned <= standing
    assert len(standing - returned) <= 4
    assert found["open"] == len(standing)
    assert found["sound"]


@pytest.mark.slow
def test_an_operation_at_any_step(durable, tmp_path):
    """One operation waits at each step, each on an account of its own; then the server dies, and they go on."""
    server, processes = durable
    folders = {step: tmp_path / step.replace(":", "-") for step in STEPS}
    running = {}
    for step, folder in folders.items():
        processes.run("open_account", scope=step)
        running[step] = processes.start(
            "operate", folder=str(folder), scope=step, key=str(uuid4()), step=step, pause=True
        )
    assert host.wait_until(lambda: all((folder / "paused").exists() for folder in folders.values()), 120)
    kill(server)
    for folder in folders.values():
        (folder / "go").touch()
    ended = {step: processes.wait(child)[0] for step, child in running.items()}
    server.start()
    for step, (spent, published) in STEPS.items():
        found = processes.run("report", scope=step)
        assert found["sound"], step
        assert found["rho_spent_nano"] in {each * COST_NANO for each in spent}, step
        assert found["open"] == (found["rho_spent_nano"] > 0 and not published), step
        assert (folders[step] / "published").exists() == published == (ended[step] == 0), step
        digests = {hashlib.sha256(output.encode()).hexdigest() for output in found["outputs"]}
        assert len(found["committed"]) == published, step
        assert digests >= set(found["committed"]), step
        if published:
            output = (folders[step] / "published").read_text()
            assert found["committed"] == [hashlib.sha256(output.encode()).hexdigest()], step
    # No output without its commit.
    assert len(digests) == sum(published for _, published in STEPS.values())
