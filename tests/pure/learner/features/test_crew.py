"""Processes side by side: batches in their order, one that is killed replaced, none left over, no secret passed on."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpal_site.embedded import host
from learner.features import crew
from learner.features.batches import BatchStep, batch_bytes, batch_of
from learner.features.crew import AHEAD, FAILED, MADE, ROOT, Crew, engine_environment, read_frame, send_frame, serve
from privacy.errors import EngineFailed
from tests.crews import batch_workers

HERE = "tests.pure.learner.features.test_crew"
DOUBLE = BatchStep("tests.pure.learner.features.test_crew:times", "2")


def times(given):
    """Return what multiplies each number of a batch."""
    return lambda batch: pa.record_batch([pa.array(np.asarray(batch.column(0)) * int(given))], names=["number"])


def numbers(*values):
    return pa.record_batch([pa.array(values, pa.int64())], names=["number"])


def quoting(given):
    """Return what fails with the words of a row."""

    def fail(batch):
        raise ValueError(f"not a number: {given} {batch.column(0)}")

    return fail


def orders(step, *batches):
    stream = io.BytesIO()
    send_frame(stream, step.to_json())
    for batch in batches:
        send_frame(stream, batch_bytes(batch))
    stream.seek(0)
    return stream


def answered(step, *batches):
    answers = io.BytesIO()
    serve(orders(step, *batches), answers)
    answers.seek(0)
    found = []
    while kind := answers.read(1):
        found.append((kind, read_frame(answers)))
    return found


def test_each_batch_is_answered_in_turn():
    found = answered(DOUBLE, numbers(1, 2), numbers(), numbers(3))
    assert [(kind, batch_of(content).to_pydict()["number"]) for kind, content in found] == [
        (MADE, [2, 4]),
        (MADE, []),
        (MADE, [6]),
    ]


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("tests.pure.learner.features.test_crew:quoting", b"ValueError"),
        ("tests.nowhere:quoting", b"ModuleNotFoundError"),
    ],
)
def test_an_error_is_told_by_its_class_alone(function, error):
    assert answered(BatchStep(function, "hidden"), numbers(7), numbers(8)) == [(FAILED, error)] * 2


def test_a_process_ends_with_its_input_and_prints_no_answer_by_accident():
    command = [sys.executable, "-m", "learner.features.crew"]
    step = BatchStep("tests.pure.learner.features.test_crew:loud", "2")
    done = subprocess.run(
        command,
        input=orders(step, numbers(1)).getvalue(),
        capture_output=True,
        env=engine_environment(),
        cwd=ROOT,
        timeout=120,
        check=True,
    )
    answers = io.BytesIO(done.stdout)
    assert answers.read(1) == MADE
    assert batch_of(read_frame(answers)).equals(numbers(1))
    assert answers.read() == b""
    assert b"heard" in done.stderr


def loud(given):
    """Return what prints and changes nothing."""

    def make(batch):
        print("heard", flush=True)
        return batch

    return make


def uneven(given):
    """Return what takes longer for even numbers, and says who made it."""

    def make(batch):
        (number,) = batch.column(0).to_pylist()
        time.sleep(0.05 if number % 2 == 0 else 0)
        return pa.record_batch([pa.array([number]), pa.array([os.getpid()])], names=["number", "by"])

    return make


def dying(given):
    """Return what kills its process: at number 3, until a file is there that the first one to die leaves."""

    def make(batch):
        if batch.column(0).to_pylist() == [3] and (given == "always" or not Path(given).exists()):
            if given != "always":
                Path(given).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    return make


def failing(given):
    """Return what fails."""

    def make(batch):
        raise ValueError("words of a row")

    return make


def many(count):
    return (numbers(number) for number in range(count))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("processes", [1, 3])
def test_batches_come_back_in_their_order(processes):
    found = list(Crew(processes).made(BatchStep(f"{HERE}:uneven", ""), many(20)))
    assert [batch.column("number").to_pylist() for batch in found] == [[number] for number in range(20)]
    assert len({by for batch in found for by in batch.column("by").to_pylist()}) == processes
    assert not batch_workers()


def test_no_more_is_read_ahead_than_the_processes_take():
    read = []

    def watched():
        for number in range(30):
            read.append(number)
            yield numbers(number)

    made = Crew(2).made(DOUBLE, watched())
    assert next(made).equals(numbers(0))
    assert len(read) == 2 * AHEAD
    made.close()
    assert not batch_workers()


def test_the_batch_of_a_process_that_was_killed_is_made_by_another(tmp_path):
    found = list(Crew(2).made(BatchStep(f"{HERE}:dying", str(tmp_path / "died")), many(8)))
    assert (tmp_path / "died").exists()
    assert [batch.column(0).to_pylist() for batch in found] == [[number] for number in range(8)]


@pytest.mark.slow
def test_a_batch_that_kills_time_and_again_ends_the_work():
    with pytest.raises(EngineFailed, match="ended 3 times"):
        list(Crew(2).made(BatchStep(f"{HERE}:dying", "always"), many(8)))
    assert not batch_workers()


def test_a_step_that_fails_is_told_by_its_class():
    with pytest.raises(EngineFailed, match="ValueError") as failed:
        list(Crew(2).made(BatchStep(f"{HERE}:failing", ""), many(3)))
    assert "words" not in str(failed.value)
    assert not batch_workers()


@pytest.mark.slow
def test_processes_end_with_whoever_started_them():
    """Killed with -9, it cannot tell them."""
    code = (
        "import sys; from learner.features.crew import Crew; from learner.features.batches import BatchStep\n"
        f"from {HERE} import many\n"
        f"made = Crew(2).made(BatchStep('{HERE}:uneven', ''), many(10**6))\n"
        "print(next(made).column('by')[0], flush=True)\n"
        "for _ in made: pass"
    )
    started = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert started.stdout is not None
    started.stdout.readline()
    children = batch_workers(started.pid)
    assert children
    started.kill()
    started.wait()
    started.stdout.close()
    assert host.wait_until(lambda: not any(map(host.running_process, children)), 120, 0.05)


def test_a_process_is_told_no_more_than_it_needs(monkeypatch):
    told = []
    real = subprocess.Popen

    def noted(command, **options):
        told.append((command, options["env"]))
        return real(command, **options)

    monkeypatch.setenv("DATABASE_URL", "secret")
    monkeypatch.setattr(crew.subprocess, "Popen", noted)
    list(Crew(1).made(BatchStep(f"{HERE}:uneven", "given"), many(1)))
    ((command, environment),) = told
    assert command[-2:] == ["-m", "learner.features.crew"]
    assert "secret" not in environment.values()
