"""The engine of one host: processes of its own do the step, each one batch at a time, while the caller reads the next.

A process that dies is replaced and its batch done again. None outlives the caller, even one that is killed.
"""

import subprocess
import sys
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Lock
from typing import Final

import pyarrow as pa

from privacy.engines.batch_worker import MADE, read_frame, send_frame
from privacy.engines.batches import ROOT, BatchStep, batch_bytes, batch_of, engine_environment
from privacy.errors import EngineFailed
from privacy.wording import as_message

# How often one batch may cost its process its life.
TRIES: Final = 3
# Batches under way for each process: one that it has, and one it takes next.
AHEAD: Final = 2
PIPE_BYTES: Final = 2**20


class Crew:
    """Does a step with so many processes, which are started when there is something to do.

    Parameters
    ----------
    processes : int
        How many, >= 1. Memory is bounded by `AHEAD` batches for each.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes

    def made(self, step: BatchStep, batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
        """Yield what the step makes of each batch, in their order."""
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
        raise EngineFailed(as_message("A process that works on the rows was ended {times} times.", times=TRIES))
    finally:
        idle.put(member)


class _Member:
    """One process, started when it is wanted."""

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
            raise EngineFailed(as_message("The work on the rows failed: {name}.", name=answer.decode()))
        return answer

    def leave(self) -> None:
        """Put a process that is gone, or shall be, out of the way."""
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
        """Stop for good."""
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
                [sys.executable, "-W", "ignore", "-m", "privacy.engines.batch_worker"],
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
