"""Run pytest in forks of a process that has imported libraries and nothing of the program: `-m tests.evidence.warm`.

Each line of the input is a JSON object: `arguments` of pytest, `output`, a file to write to, and `seconds`, the limit.
Each line of the output is the exit code of one run, negative where a signal ended it.
"""

import gc
import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path

import pytest

# Slow to import, and none of them needs the settings.
LIBRARIES = (
    "celery.app.task",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "django.db.backends.postgresql.base",
    "django.forms",
    "fastavro",
    "hypothesis.extra.numpy",
    "hypothesis.strategies",
    "kombu.transport.redis",
    "pandas",
    "PIL.Image",
    "psutil",
    "psycopg",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pydantic",
    "requests",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.pipeline",
    "valkey.asyncio",
    "xdist.plugin",
)
PROGRAM = {"addons", "annotation", "dpal", "dpal_site", "learner", "privacy"}


def run(arguments: list[str], output: str, seconds: int) -> int:
    """Return the exit code of pytest in a fork, which is killed with what it started when the time is over."""
    child = os.fork()
    if child == 0:
        os.setsid()
        with Path(os.devnull).open("rb") as nothing, Path(output).open("wb") as said:
            os.dup2(nothing.fileno(), 0)
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        sys.exit(pytest.main(arguments))
    signal.signal(signal.SIGALRM, lambda _number, _frame: os.killpg(child, signal.SIGKILL))
    signal.alarm(seconds)
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    for library in LIBRARIES:
        import_module(library)
    loaded = {name.partition(".")[0] for name in sys.modules} & PROGRAM
    assert not loaded, f"a fork would not read these again: {loaded}"
    gc.freeze()
    for line in sys.stdin:
        print(run(**json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
