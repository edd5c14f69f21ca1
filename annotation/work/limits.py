"""Reader of untrusted bytes in one-shot processes with limits on memory, processor time, waiting and output."""

# `python -m annotation.work.limits` is a fresh interpreter without Django and without the environment of the process
# that asks; it forks one child for each job. A job is a generator function `job(file, **arguments)` that yields a
# JSON object and bytes. Nothing else comes back, so what takes over a reader of pictures has taken over a process
# without secrets.

import atexit
import contextlib
import importlib
import io
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, NoReturn

from annotation.errors import InvalidUpload, SiteBusy
from dpal.errors import Unreadable
from privacy.wording import Message, as_message, message_from, message_of

MIB = 1024 * 1024
# Looks of one process at a time, and with those that wait: its other threads serve pages that look at no file. One
# person has fewer, so that another one's look waits for none of theirs.
MOST_LOOKS, MOST_WAITING_LOOKS = 2, 3
MOST_LOOKS_OF_ONE, MOST_WAITING_LOOKS_OF_ONE = 1, 2
ROOT = Path(__file__).resolve().parents[2]
IDLE_SECONDS = 120.0
# Threads would take address space, and Arrow's own allocator reserves a gigabyte of it.
ENVIRONMENT = {
    "PATH": os.defpath,
    "LC_ALL": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    # The package `dpal`, where it is read in place.
    "PYTHONPATH": str(ROOT / "client" / "src"),
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
MODULE_BYTES = 128
HEAD = struct.Struct(">IQ")
LENGTH = struct.Struct(">I")
MOST_HEAD_BYTES = 64 * MIB
OUT_OF_MEMORY = 3
NICENESS = 5
MOST_CALLS = 500
TOO_DEEP = as_message("file: holds values that nest too deeply")
Answer = tuple[dict[str, Any], bytes]
Job = Callable[..., Iterator[Answer]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one job.

    MiB of `memory` beyond what the interpreter has, seconds of `cpu` from one message to the next, seconds that the
    caller waits for one message (`time`) and for all (`total`), bytes of all messages together (`size`).
    """

    memory: int = 384
    cpu: int = 10
    time: int = 60
    size: int = 64 * MIB
    total: int = 24 * 3600


# Of a page, whose thread waits; and of a worker, which reads the whole of a file.
LOOK = Limits(total=20)
WHOLE = Limits(time=120, size=2**40)


class Rule(StrEnum):
    MEMORY = "memory"
    CPU = "cpu"
    TIME = "time"
    SIZE = "size"
    CRASH = "crash"


class LimitReached(InvalidUpload):
    """A job was killed by a rule; `reason` says it without naming the field."""

    def __init__(self, limits: Limits, rule: Rule) -> None:
        self.rule = rule
        self.reason = reasons(limits)[rule]
        super().__init__(as_message("file: {reason}", reason=self.reason))


def reasons(limits: Limits) -> dict[Rule, Message]:
    return {
        Rule.MEMORY: as_message("needs more than {most:,} MiB of memory to be read", most=limits.memory),
        Rule.CPU: as_message("takes more than {most:,} seconds to be read", most=limits.cpu),
        Rule.TIME: as_message("takes more than {most:,} seconds to be read", most=min(limits.time, limits.total)),
        Rule.SIZE: as_message("holds more than {most:,} bytes once read", most=limits.size),
        Rule.CRASH: as_message("makes its reader crash"),
    }


def run(job: Job, file: BinaryIO, limits: Limits, /, **arguments: Any) -> Iterator[Answer]:
    """Yield the messages of a job that reads a file; closing the iterator kills it.

    Raises what the job raised, `LimitReached` if it was killed, `SiteBusy` if others look at files already.
    """
    if _is_limited:
        yield from job(file, **arguments)
        return
    with contextlib.ExitStack() as stack:
        if limits.total <= LOOK.total:
            _take_place(limits.total, stack)
        source = _descriptor(file, stack)
        request = json.dumps([job.__qualname__, arguments, limits.memory, limits.cpu]).encode()
        for _ in range(2):
            output, status = _server.begin(job.__module__, request, source, stack)
            answers = _Answers(output, limits)
            if (first := answers.read(HEAD.size)) or status.recv(1, socket.MSG_PEEK):
                break
            # The server had been idle and ended at this moment.
        total = 0
        while first is not None and len(first) == HEAD.size:
            length, size = HEAD.unpack(first)
            total += length + size
            if length > MOST_HEAD_BYTES or total > limits.size:
                raise LimitReached(limits, Rule.SIZE)
            body = answers.read(length + size)
            if body is None or len(body) < length + size:
                break
            head = json.loads(body[:length])
            if "refused" in head:
                raise InvalidUpload(message_from(head["refused"]))
            if "failed" in head:
                raise RuntimeError(f"{job.__qualname__} failed: {head['failed']}")
            with contextlib.suppress(OSError, ValueError):
                file.seek(head.pop("at"))
            yield head, bytes(body[length:])
            first = answers.read(HEAD.size)
        _check_end(status.recv(LENGTH.size), limits)


# Returns who waits for the looks of this thread; None where that is no person.
asking: ContextVar[Callable[[], Hashable | None]] = ContextVar("asking", default=lambda: None)
_is_limited = False
_changed = threading.Condition()
_looking: Counter[Hashable | None] = Counter()
_held: Counter[Hashable | None] = Counter()


def _take_place(seconds: int, stack: contextlib.ExitStack) -> None:
    person = asking.get()()

    def has_room(taken: Counter[Hashable | None], most: int, most_of_one: int) -> bool:
        return taken.total() < most and (person is None or taken[person] < most_of_one)

    def take(taken: Counter[Hashable | None]) -> None:
        taken[person] += 1
        stack.callback(_leave, taken, person)

    with _changed:
        if has_room(_held, MOST_WAITING_LOOKS, MOST_WAITING_LOOKS_OF_ONE):
            take(_held)
            if _changed.wait_for(lambda: has_room(_looking, MOST_LOOKS, MOST_LOOKS_OF_ONE), seconds):
                take(_looking)
                return
    raise SiteBusy("Too much work is waiting. Try again in a few minutes.")


def _leave(taken: Counter[Hashable | None], person: Hashable | None) -> None:
    with _changed:
        taken[person] -= 1
        if not taken[person]:
            del taken[person]
        _changed.notify_all()


def _check_end(status: bytes, limits: Limits) -> None:
    code = os.waitstatus_to_exitcode(LENGTH.unpack(status)[0]) if len(status) == LENGTH.size else -signal.SIGKILL
    if code == -signal.SIGXCPU:
        raise LimitReached(limits, Rule.CPU)
    # Code that is not Python's aborts where it gets no memory, and the system kills what takes the last of it.
    if code in (OUT_OF_MEMORY, -signal.SIGABRT, -signal.SIGKILL):
        raise LimitReached(limits, Rule.MEMORY)
    if code:
        raise LimitReached(limits, Rule.CRASH)


class _Answers:
    """Output of a job, and the time its caller has waited for it."""

    def __init__(self, output: int, limits: Limits) -> None:
        self._output, self._limits, self._waited = output, limits, 0.0
        self._ready = select.poll()
        self._ready.register(output, select.POLLIN)

    def read(self, size: int) -> bytearray | None:
        found = bytearray()
        while len(found) < size:
            began = time.monotonic()
            most = min(self._limits.time, self._limits.total - self._waited)
            if most <= 0 or not self._ready.poll(most * 1000):
                raise LimitReached(self._limits, Rule.TIME)
            self._waited += time.monotonic() - began
            piece = os.read(self._output, min(size - len(found), MIB))
            if not piece:
                return found or None
            found += piece
        return found


def _descriptor(file: BinaryIO, stack: contextlib.ExitStack) -> int:
    try:
        return file.fileno()
    except (OSError, AttributeError):
        copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed with the stack
        at = file.tell()
        file.seek(0)
        shutil.copyfileobj(file, copy, MIB)
        file.seek(at)
        copy.flush()
        return copy.fileno()


class _Server:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, module: str, request: bytes, source: int, stack: contextlib.ExitStack) -> tuple[int, socket.socket]:
        """Start a job; return where its messages come and where its end is told."""
        output, its_output = os.pipe()
        stack.callback(os.close, output)
        status, its_status = socket.socketpair()
        stack.enter_context(status)
        try:
            message = module.encode().ljust(MODULE_BYTES)
            handed = [its_status.fileno(), its_output, source]
            with self._lock:
                try:
                    socket.send_fds(self._running(), [message], handed)
                except OSError:
                    self.end()
                    socket.send_fds(self._running(), [message], handed)
        finally:
            its_status.close()
            os.close(its_output)
        with contextlib.suppress(OSError):
            status.sendall(LENGTH.pack(len(request)) + request)
        return output, status

    def _running(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            self.end()
        if self._control is None:
            self._control, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-s", "-m", "annotation.work.limits", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    env=ENVIRONMENT,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
        return self._control

    def end(self) -> None:
        """End the interpreter; jobs that run go on."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.wait()
        self._control = self._process = None

    def leave(self) -> None:
        """Leave the interpreter to the process that started it, after a fork of that."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.returncode = 0
        self.__init__()  # type: ignore[misc]


_server = _Server()
atexit.register(_server.end)
os.register_at_fork(after_in_child=_server.leave)


def serve(control: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control.settimeout(IDLE_SECONDS)
    while True:
        try:
            message, handed, _, _ = socket.recv_fds(control, MODULE_BYTES, 3, socket.MSG_WAITALL)
        except TimeoutError:
            return
        if not message:
            return
        module = importlib.import_module(message.decode().rstrip())
        if os.fork() == 0:
            try:
                control.close()
                _supervise(module, *handed)
            finally:
                os._exit(1)
        for descriptor in handed:
            os.close(descriptor)


def _supervise(module: ModuleType, status: int, output: int, source: int) -> None:
    """Run a job in a child, tell how it ended, and kill it if the caller goes away."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    caller = socket.socket(fileno=status)
    (length,) = LENGTH.unpack(caller.recv(LENGTH.size, socket.MSG_WAITALL))
    name, arguments, memory, cpu = json.loads(caller.recv(length, socket.MSG_WAITALL))
    ended, held = os.pipe()
    child = os.fork()
    if child == 0:
        caller.close()
        _work(getattr(module, name), arguments, output, source, memory=memory, cpu=cpu)
    for descriptor in (held, output, source):
        os.close(descriptor)
    select.select([ended, caller.fileno()], [], [])
    with contextlib.suppress(ProcessLookupError):
        if not select.select([ended], [], [], 0)[0]:
            os.kill(child, signal.SIGKILL)
    code = os.waitpid(child, 0)[1]
    with contextlib.suppress(OSError):
        caller.sendall(LENGTH.pack(code))


def _work(job: Job, arguments: dict[str, Any], output: int, source: int, *, memory: int, cpu: int) -> NoReturn:
    global _is_limited
    _is_limited, code = True, 1
    try:
        # Clicks go before what somebody uploads.
        os.nice(NICENESS)
        # A value that nests deeper could not be handed on to a caller who is some calls deep.
        sys.setrecursionlimit(MOST_CALLS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        if sys.platform == "linux":  # another system has no limit that holds
            resource.setrlimit(resource.RLIMIT_AS, (_address_space() + memory * MIB,) * 2)
        with open(output, "wb") as out, open(f"/dev/fd/{source}", "rb") as file:  # noqa: PTH123 - a descriptor
            _allow(cpu)
            file.seek(0)
            try:
                for head, payload in job(file, **arguments):
                    _send(out, head | {"at": file.tell()}, payload)
                    _allow(cpu)
            except (InvalidUpload, Unreadable) as refusal:
                _send(out, {"refused": message_of(str(refusal)).as_json()})
            except RecursionError:
                _send(out, {"refused": TOO_DEEP.as_json()})
            except MemoryError:
                os._exit(OUT_OF_MEMORY)
            except Exception as error:  # noqa: BLE001 - told by its place: its words may be of the file
                places = [f"{one.filename}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)]
                _send(out, {"failed": f"{type(error).__name__} at {places[-1]}"})
        code = 0
    except MemoryError:
        code = OUT_OF_MEMORY
    finally:
        os._exit(code)


def _allow(seconds: int) -> None:
    most = int(time.process_time()) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _send(out: io.BufferedWriter, head: dict[str, Any], payload: bytes = b"") -> None:
    # Half a character, which a broken text may hold, is read back as it is.
    written = json.dumps(head, ensure_ascii=False).encode("utf-8", "surrogatepass")
    out.write(HEAD.pack(len(written), len(payload)))
    out.write(written)
    out.write(payload)
    out.flush()


if __name__ == "__main__":
    # By its name, as the jobs know it.
    importlib.import_module("annotation.work.limits").serve(socket.socket(fileno=int(sys.argv[1])))
