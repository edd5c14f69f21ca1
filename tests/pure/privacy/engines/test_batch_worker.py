"""What a process of an engine answers: batches, errors by their class alone, and nothing once nobody asks."""

import io
import subprocess
import sys

import pytest

from privacy.engines.batch_worker import FAILED, MADE, read_frame, send_frame, serve
from privacy.engines.batches import ROOT, BatchStep, batch_bytes, batch_of, engine_environment
from tests.pure.privacy.engines.test_batches import DOUBLE, numbers


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
        ("tests.pure.privacy.engines.test_batch_worker:quoting", b"ValueError"),
        ("tests.nowhere:quoting", b"ModuleNotFoundError"),
    ],
)
def test_an_error_is_told_by_its_class_alone(function, error):
    assert answered(BatchStep(function, "hidden"), numbers(7), numbers(8)) == [(FAILED, error)] * 2


def test_a_stream_that_ends_within_a_frame_ends_it():
    stream = orders(DOUBLE, numbers(1))
    stream.truncate(len(stream.getvalue()) - 1)
    answers = io.BytesIO()
    serve(stream, answers)
    assert answers.getvalue() == b""


def test_a_process_ends_with_its_input_and_prints_no_answer_by_accident():
    command = [sys.executable, "-m", "privacy.engines.batch_worker"]
    step = BatchStep("tests.pure.privacy.engines.test_batch_worker:loud", "2")
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
