"""Processes of this host that run one step on batches; a dead one is replaced and its batch made again."""

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import IO, Final

import pyarrow as pa

from learner.features.batches import BatchStep, batch_bytes, batch_of
from privacy.errors import EngineFailed

# How often one batch may cost its process its life.
TRIES: Final = 3
# Batches under way for each process: one that it has, and one it takes next.
AHEAD: Final = 2
PIPE_BYTES: Final = 2**20
SIZE_BYTES: Final = 8
MADE, FAILED = b"+", b"-"
# No address, key or token of the environment is passed on.
PASSED_ON: Final = ("PATH", "HOME", "USER", "LANG", "TZ")
PASSED_ON_PREFIXES: Final = ("LC_", "OMP_", "OPENBLAS_")
ROOT: Final = Path(__file__).parents[2]


def engine_environment(*more: str) -> dict[str, str]:
    """Return the environment of an engine's process, and variables that begin with one of `more`; nothing secret."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES + more)
    }
    return kept | {"PYTHONPATH": str(ROOT)}


class Crew:
    """Does a step with so many processes, which start when there is something to do; `AHEAD` batches wait for each."""

    def __init__(self, processes: int) -> None:
        self._processes = processes

    def made(self, step: BatchStep, batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
        members = [_Member(step) for _ in range(self._processes)]
        idle: SimpleQueue[_Member] = SimpleQueue()
        for member in members:
            idle.put(member)
        under_way: deque[Future[bytes]] = deque()
        threads = ThreadPoolExecutor(self._processes)
        try:
            for batch in batches:
                under_way.append(threads.submit(_made_by_one, idle, batch_bytes(batch)))
                if len(under_way) >= AHEAD * self._processes:
                    yield batch_of(under_way.popleft().result())
            while under_way:
                yield batch_of(under_way.popleft().result())
        finally:
            for member in members:
                member.end()
            threads.shutdown(cancel_futures=True)
            for member in members:
                member.leave()


def _made_by_one(idle: "SimpleQueue[_Member]", content: memoryview) -> bytes:
    member = idle.get()
    try:
        for _ in range(TRIES):
            try:
                return member.answer(content)
            except (EOFError, BrokenPipeError):
                member.leave()
        raise EngineFailed(f"A process that works on the rows was ended {TRIES} times.")
    finally:
        idle.put(member)


class _Member:
    def __init__(self, step: BatchStep) -> None:
        self._step, self._lock, self._ended = step, Lock(), False
        self._process: subprocess.Popen[bytes] | None = None

    def answer(self, content: memoryview) -> bytes:
        """Return what the step makes of a batch; `EOFError` or `BrokenPipeError` where the process is gone."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        send_frame(process.stdin, content)
        kind = process.stdout.read(1)
        answer = read_frame(process.stdout)
        if kind != MADE:
            raise EngineFailed(f"The work on the rows failed: {answer.decode()}.")
        return answer

    def leave(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                # What was not sent to it is lost with it.
                try:
                    stream.close()
                except BrokenPipeError:
                    continue

    def end(self) -> None:
        self._ended = True
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def _started(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._ended:
                raise EOFError
            if self._process is not None:
                return self._process
            self._process = process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "learner.features.crew"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=engine_environment(),
                cwd=ROOT,
                pipesize=PIPE_BYTES,
                start_new_session=True,
            )
        assert process.stdin is not None
        send_frame(process.stdin, self._step.to_json())
        return process


def send_frame(stream: IO[bytes], content: bytes | memoryview) -> None:
    stream.write(len(content).to_bytes(SIZE_BYTES, "little"))
    stream.write(content)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes:
    """Return what `send_frame` wrote, or raise `EOFError` where the stream ends."""
    size = int.from_bytes(_exactly(stream, SIZE_BYTES), "little")
    return _exactly(stream, size)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


def serve(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Answer each batch until nothing more comes; an error by its class alone, since its words may quote a row."""
    try:
        ready = cache(BatchStep(**json.loads(read_frame(orders))).ready)
        while True:
            content = read_frame(orders)
            try:
                made = batch_bytes(ready()(batch_of(content)))
            except Exception as error:  # noqa: BLE001 - told by its class
                answers.write(FAILED)
                send_frame(answers, type(error).__name__.encode())
            else:
                answers.write(MADE)
                send_frame(answers, made)
    except (EOFError, BrokenPipeError):
        return


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints is no answer.
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)
    # Nobody reads what is still buffered.
    os._exit(0)


if __name__ == "__main__":
    main()
