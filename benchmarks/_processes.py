"""Processor seconds and memory of a process and of all it has started."""

import os
import threading
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


class Memory:
    """The largest memory of its own that any process under one process has held, looked at every so many seconds.

    `together_mib` is the largest sum over all of them at one look.
    """

    def __init__(self, root: int, *, every: float = 0.1) -> None:
        self.largest_mib = self.together_mib = 0.0
        self._root, self._every, self._stop = root, every, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._every):
            self._look()

    def _look(self) -> None:
        together = 0.0
        for pid in under(self._root):
            try:
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            except GONE:
                continue
            held = sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024
            self.largest_mib = max(self.largest_mib, held)
            together += held
        self.together_mib = max(self.together_mib, together)


class Usage(Memory):
    """Memory, and the processor seconds that all processes under one have used meanwhile, those that ended among them.

    What a process used after the last look before its end is not counted.
    """

    def __enter__(self) -> "Usage":
        self._before = self._seen = used_by(self._root)
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__()
        self._seen = self._seen | used_by(self._root)
        self.processor_seconds = sum(used - self._before.get(each, 0) for each, used in self._seen.items()) / TICKS

    def _look(self) -> None:
        super()._look()
        self._seen = self._seen | used_by(self._root)


def under(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in children.read_text().split()]
            except GONE:
                continue
    return found


def used_by(root: int) -> dict[tuple[int, int], int]:
    """Return the ticks that each process under one has used by itself; a process is its number and its beginning."""
    found = {}
    for pid in under(root):
        if fields := _stat(pid):
            found[pid, fields[19]] = sum(fields[11:13])
    return found


def processor_seconds(root: int) -> float:
    """Return what a process, its living descendants and those it has outlived have used."""
    ticks = 0
    for pid in under(root):
        if fields := _stat(pid):
            ticks += sum(fields[11:15] if pid == root else fields[11:13])
    return ticks / TICKS


def _stat(pid: int) -> list[int]:
    """Return the numbers that follow a process's name, the state as 0; empty where it has ended."""
    try:
        _, *numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except GONE:
        return []
    return [0, *map(int, numbers)]
