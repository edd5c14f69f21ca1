"""A job reads a file in a process of its own, and is killed by the limit it reaches."""

import contextlib
import contextvars
import gc
import io
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from annotation.errors import InvalidUpload, SiteBusy
from annotation.work import limits
from annotation.work.limits import ENVIRONMENT, ROOT, LimitReached, Limits, run
from tests import limited_jobs as jobs

NOTHING = io.BytesIO(b"")
SOME = Limits(memory=64, cpu=1, time=20, size=2**22)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(holds, seconds=20):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_messages_come_in_order_with_their_bytes():
    found = list(run(jobs.echo, io.BytesIO(b"hello"), SOME, times=3))
    assert found == [({"number": number}, b"hello") for number in range(3)]


def test_a_file_on_disk_is_read_from_its_beginning_and_its_place_follows():
    with tempfile.TemporaryFile() as file:
        file.write(b"hello")
        file.seek(2)
        assert [content for _, content in run(jobs.echo, file, SOME, times=1)] == [b"hello"]
        assert file.tell() == 5


@pytest.mark.parametrize(
    ("job", "arguments", "rule", "words"),
    [
        (jobs.allocate, {"mib": 100}, "memory", "file: needs more than 64 MiB of memory to be read"),
        (jobs.abort, {}, "memory", "file: needs more than 64 MiB of memory to be read"),
        (jobs.spin, {"seconds": 30}, "cpu", "file: takes more than 1 seconds to be read"),
        (jobs.flood, {}, "size", "file: holds more than 4,194,304 bytes once read"),
        (jobs.segfault, {}, "crash", "file: makes its reader crash"),
    ],
)
def test_the_limit_that_is_reached_is_named(job, arguments, rule, words):
    with pytest.raises(LimitReached, match=words) as reached:
        for _ in run(job, NOTHING, SOME, **arguments):
            pass
    assert reached.value.rule == rule


def test_waiting_has_a_limit_and_ends_the_process():
    answers = run(jobs.wait, NOTHING, Limits(time=1))
    pid = next(answers)[0]["pid"]
    with pytest.raises(LimitReached, match="takes more than 1 seconds") as reached:
        next(answers)
    assert reached.value.rule == "time"
    wait_until(lambda: not alive(pid))


def test_short_waits_have_a_limit_together():
    with pytest.raises(LimitReached, match="takes more than 1 seconds") as reached:
        list(run(jobs.drip, NOTHING, Limits(total=1)))
    assert reached.value.rule == "time"


def test_what_nobody_waits_for_any_more_is_killed():
    answers = run(jobs.wait, NOTHING, SOME)
    pid = next(answers)[0]["pid"]
    assert alive(pid)
    answers.close()
    wait_until(lambda: not alive(pid))


def test_a_refusal_keeps_its_message():
    with pytest.raises(InvalidUpload) as refused:
        list(run(jobs.refuse, NOTHING, SOME))
    assert refused.value.args[0].code == "file: has {n} wings"
    assert refused.value.args[0].parameters["n"] == 3


def test_a_fault_tells_its_place_and_no_word_of_the_file():
    with pytest.raises(RuntimeError, match=r"fail failed: ValueError at .*limited_jobs.py:\d+$"):
        list(run(jobs.fail, NOTHING, SOME))


def test_a_job_has_no_environment_and_writes_no_file(monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_KEY", "hidden")
    limits._server.end()
    found = next(run(jobs.describe, NOTHING, SOME))[0]
    assert found["environment"] == ENVIRONMENT | {
        name: value for name, value in found["environment"].items() if name in ("LC_CTYPE",)
    }
    assert found["threads"] == 1
    with pytest.raises(RuntimeError, match="OSError"):
        list(run(jobs.write, NOTHING, SOME, path=str(tmp_path / "a")))


def test_the_interpreter_knows_no_django_and_is_begun_again_where_it_died():
    list(run(jobs.echo, NOTHING, SOME, times=1))
    limits._server._process.kill()
    limits._server._process.wait()
    assert len(list(run(jobs.echo, NOTHING, SOME, times=2))) == 2
    program = "import annotation.data.readers.reading, addons.spark.iceberg, sys; print('django' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert said.stdout == "False\n"


def test_a_forked_process_has_an_interpreter_of_its_own():
    list(run(jobs.echo, NOTHING, SOME, times=1))
    mine = limits._server._process.pid
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException):
            same = limits._server._process is not None
            code = int(same or len(list(run(jobs.echo, NOTHING, SOME, times=2))) != 2)
            limits._server.end()
        os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert limits._server._process.pid == mine
    list(run(jobs.echo, NOTHING, SOME, times=1))


def test_no_descriptor_is_left_open():
    list(run(jobs.echo, NOTHING, SOME, times=1))
    gc.collect()
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(5):
        list(run(jobs.echo, NOTHING, SOME, times=1))
        next(run(jobs.wait, NOTHING, SOME))
    gc.collect()
    assert len(list(Path("/dev/fd").iterdir())) <= before


def test_a_value_comes_whole_or_is_refused_for_its_depth():
    ((found, _),) = run(jobs.nest, NOTHING, SOME, depth=300)
    assert str(found["value"]).count("[") == 301
    with pytest.raises(InvalidUpload, match="nest too deeply"):
        list(run(jobs.nest, NOTHING, SOME, depth=600))


def test_two_threads_look_and_a_third_waits_for_one_of_them():
    look = Limits(total=2)
    first, second = run(jobs.wait, NOTHING, look), run(jobs.wait, NOTHING, look)
    next(first), next(second)
    with pytest.raises(SiteBusy):
        next(run(jobs.echo, NOTHING, look, times=1))
    # What a worker reads waits for nobody.
    assert next(run(jobs.echo, NOTHING, SOME, times=1))
    first.close()
    assert next(run(jobs.echo, NOTHING, look, times=1))
    second.close()


def asking_as(person):
    limits.asking.set(lambda: person)


def test_a_persons_looks_wait_for_each_other_and_leave_room_for_another():
    look = Limits(total=1)
    context = contextvars.copy_context()
    context.run(asking_as, "ann")
    first = context.run(run, jobs.wait, NOTHING, look)
    context.run(next, first)
    with pytest.raises(SiteBusy):
        context.run(lambda: next(run(jobs.echo, NOTHING, look, times=1)))
    other = contextvars.copy_context()
    other.run(asking_as, "ben")
    assert other.run(lambda: next(run(jobs.echo, NOTHING, look, times=1)))
    first.close()
    assert context.run(lambda: next(run(jobs.echo, NOTHING, look, times=1)))
    assert not limits._held
    assert not limits._looking


def test_a_job_runs_another_one_under_its_own_limits():
    pids = [found["pid"] for found, _ in run(jobs.nested, NOTHING, SOME)]
    assert len(pids) == 2
    assert len(set(pids)) == 1
    with pytest.raises(LimitReached, match="needs more than 64 MiB"):
        list(run(jobs.nested_allocation, NOTHING, SOME))
