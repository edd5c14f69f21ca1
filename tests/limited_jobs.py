"""Jobs of limited processes that misbehave."""

import os
import signal
import socket
import threading
import time

from annotation.errors import InvalidUpload
from annotation.work.limits import Limits, run
from privacy.wording import as_message


def echo(file, *, times):
    for number in range(times):
        file.seek(0)
        yield {"number": number}, file.read()


def allocate(file, *, mib):
    yield {"bytes": len(bytearray(mib * 2**20))}, b""


def abort(file):
    yield {}, b""
    os.abort()


def spin(file, *, seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    yield {}, b""


def wait(file):
    yield {"pid": os.getpid()}, b""
    time.sleep(600)


def drip(file):
    while True:
        time.sleep(0.1)
        yield {}, b""


def nest(file, *, depth):
    value = []
    for _ in range(depth):
        value = [value]
    yield {"value": value}, b""


def flood(file):
    while True:
        yield {}, bytes(2**20)


def segfault(file):
    yield {}, b""
    os.kill(os.getpid(), signal.SIGSEGV)


def refuse(file):
    yield {}, b""
    raise InvalidUpload(as_message("file: has {n} wings", n=3))


def fail(file):
    yield {"first": True}, b""
    raise ValueError("with words of the file")


def describe(file):
    with socket.socket(socket.AF_UNIX) as probe:
        kind = probe.family.name
    yield {"environment": dict(os.environ), "threads": threading.active_count(), "family": kind}, b""


def write(file, *, path):
    with open(path, "w") as target:  # noqa: PTH123
        target.write("x" * 100)
    yield {}, b""


def nested(file):
    yield {"pid": os.getpid()}, b""
    yield next(run(wait, file, Limits()))


def nested_allocation(file):
    yield from run(allocate, file, Limits(memory=1024), mib=100)
