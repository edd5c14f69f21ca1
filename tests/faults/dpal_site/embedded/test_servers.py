import os
import subprocess
import sys

import psycopg
import pytest

from dpal_site.embedded.servers import REPOSITORY

pytestmark = pytest.mark.faults
COMMAND = [sys.executable, "-m", "dpal_site.embedded"]


@pytest.mark.slow
def test_concurrent_starters_share_one_server(tmp_path):
    environment = {**os.environ, "DPAL_VAR": str(tmp_path / "var"), "DPAL_NO_SERVERS": ""}

    def begin(action):
        return subprocess.Popen(
            [*COMMAND, action],
            env=environment,
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(process):
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said
        return said

    try:
        said = [finish(process) for process in [begin("start") for _ in range(4)]]
        assert len(set(said)) == 1
        assert said[0].count("ready at 127.0.0.1") == 2
        url = finish(begin("url")).splitlines()[0].removeprefix("DATABASE_OWNER_URL=")
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("dpal",)
    finally:
        finish(begin("stop"))
    assert finish(begin("status")) == "postgres: stopped\nvalkey: stopped\n"
