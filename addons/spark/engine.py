"""Engine of a cluster: Spark moves the rows, and every executor runs the kernel that one process runs."""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any, Final

import pyarrow as pa

from addons.spark.jobs import FileReader, UnknownGate, gate_told
from learner.features.crew import engine_environment
from privacy.errors import EngineFailed, PoolDamaged
from privacy.gate.counting import CountingGate, gate_as_json
from privacy.gate.engine import PoolFile, Tell

# A share of so many rows is counted by one executor in about a second, in little memory.
SHARE_ROWS: Final = 1_000_000
LOOK_AGAIN_SECONDS: Final = 0.2
# How long Spark may take to put its folders away.
PATIENCE_SECONDS: Final = 20.0
READ_BYTES: Final = 2**20
# What the driver is told beside, to find a cluster and, by its own keys, a bucket.
CLUSTER_PREFIXES: Final = ("JAVA_HOME", "SPARK_", "PYSPARK_", "HADOOP_", "YARN_", "KUBE", "AWS_")
REASONS: Final = {
    "PlainCluster": "The cluster is not encrypted: set spark.authenticate and spark.network.crypto.enabled in "
    "spark-defaults.conf.",
    "OtherVersions": "Executors of the cluster have another Python, numpy or pyarrow than the site.",
    "TableChanged": "An executor cannot read a file of the registered table: it needs its folder under the same path, "
    "or a key to its bucket.",
}


class SparkEngine:
    """Counts a pool on a cluster: `spark://host:7077`, `k8s://...`, `yarn`, `local[2]`.

    An executor must be able to open `look_at` before anything is paid. `cut` returns a file as the parts that are a
    task each; about `share_rows` rows are capped, and counted, at once.
    """

    def __init__(
        self,
        master: str,
        reader: FileReader,
        *,
        look_at: PoolFile | None = None,
        cut: Callable[[PoolFile], Iterable[PoolFile]] = lambda file: (file,),
        share_rows: int = SHARE_ROWS,
    ) -> None:
        self._master, self._reader, self._look_at, self._share_rows = master, reader, look_at, share_rows
        self._cut = cut
        self._driver: Driver | None = None

    @contextmanager
    def opened(self, gate: CountingGate, tell: Tell) -> Iterator[None]:
        _refuse_unknown(gate)
        with driver_of_a_job(self._master, tell, needs=self._reader.needs) as self._driver:
            try:
                if self._look_at is not None:
                    self._driver.order(look=asdict(self._look_at), reader=asdict(self._reader))
                    self._driver.answer("seen", 0, tell)
                yield
            finally:
                self._driver = None

    def counted(self, gate: CountingGate, files: Sequence[PoolFile], *, key: bytes, tell: Tell) -> list[pa.Table]:
        """Return the texts that reach the gate's minimum, with exact counts, as one table; only while opened."""
        assert self._driver is not None
        if not files:
            return []
        self._driver.order(
            gate=gate_as_json(gate),
            files=[asdict(part) for file in files for part in self._cut(file)],
            reader=asdict(self._reader),
            key=key.hex(),
            share_rows=self._share_rows,
        )
        size = self._driver.answer("bytes", 0, tell)
        rows = sum(file.row_count for file in files)
        table = pa.ipc.open_stream(self._driver.take(size, lambda: tell(rows))).read_all()
        return [table] if table.num_rows else []


def _refuse_unknown(gate: CountingGate) -> None:
    try:
        # Words of an enumeration equal plain ones, and mean nothing to who compares by identity.
        known = repr(gate_told(json.loads(json.dumps(gate_as_json(gate))))) == repr(gate)
    except (UnknownGate, TypeError):
        known = False
    if not known:
        raise EngineFailed(
            f"The cluster's executors lack the code of the gate {type(gate).__name__}: its mechanism must be "
            "a module of the package privacy with numbers and strings as parameters."
        )


class Driver:
    def __init__(self, folder: str) -> None:
        environment = engine_environment(*CLUSTER_PREFIXES)
        # Executors run the same interpreter where nothing else is said: they have the site's image, or its environment.
        environment.setdefault("PYSPARK_PYTHON", sys.executable)
        environment |= {"TMPDIR": folder, "SPARK_LOCAL_DIRS": folder}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "addons.spark.driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._heard = bytearray()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    def order(self, **order: Any) -> None:
        try:
            self._input.write(json.dumps(order).encode() + b"\n")
            self._input.flush()
        except BrokenPipeError:
            raise _ended() from None

    def answer(self, wanted: str, read: int, tell: Tell) -> Any:
        """Return what is told under a name, passing on how much was read until then."""
        while True:
            said = json.loads(self._line(lambda: tell(read)))  # noqa: B023 - called before it changes
            if "failed" in said:
                raise _failure(said["failed"])
            if wanted in said:
                return said[wanted]
            read = said["read"]

    def take(self, size: int, listen: Any) -> bytes:
        while len(self._heard) < size:
            self._hear(listen)
        taken = bytes(self._heard[:size])
        del self._heard[:size]
        return taken

    def end(self) -> None:
        """Close its input, and end whatever of it is left after a while."""
        with _unless_gone(BrokenPipeError):
            self._input.close()
        given_up = time.monotonic() + PATIENCE_SECONDS
        with _unless_gone(ProcessLookupError):
            # Spark's own process is in the driver's group, and outlives it by a moment.
            while time.monotonic() < given_up:
                self._process.poll()
                os.killpg(self._process.pid, 0)
                time.sleep(LOOK_AGAIN_SECONDS / 4)
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._selector.close()
        self._output.close()

    def _line(self, listen: Any) -> bytes:
        while (end := self._heard.find(b"\n")) < 0:
            self._hear(listen)
        return self.take(end + 1, listen)

    def _hear(self, listen: Any) -> None:
        while not self._selector.select(LOOK_AGAIN_SECONDS):
            listen()
        piece = os.read(self._output.fileno(), READ_BYTES)
        if not piece:
            raise _ended()
        self._heard += piece


@contextmanager
def driver_of_a_job(master: str, tell: Tell, **job: Any) -> Iterator[Driver]:
    """Start a driver that has reached the cluster and seen an executor run; end it afterwards."""
    if find_spec("pyspark") is None:
        raise EngineFailed("SPARK_MASTER names a cluster and the extra spark is not installed.")
    with tempfile.TemporaryDirectory(prefix="dpal-spark-") as folder:
        driver = Driver(folder)
        try:
            driver.order(master=master, folder=folder, **job)
            try:
                driver.answer("ready", 0, tell)
            except FileNotFoundError as error:
                # A program of Spark's, and no file of the pool.
                raise _did_nothing(str(error)) from None
            yield driver
        finally:
            driver.end()


@contextmanager
def _unless_gone(error: type[Exception]) -> Iterator[None]:
    try:
        yield
    except error:
        return


def _ended() -> EngineFailed:
    return EngineFailed("The driver of the cluster's job ended without an answer.")


def _failure(name: str) -> Exception:
    if name == "PoolDamaged":
        return PoolDamaged("A pool file was changed after it was stored (its digest differs). It was not read.")
    if name == "FileNotFoundError":
        return FileNotFoundError(name)
    return _did_nothing(name)


def _did_nothing(name: str) -> EngineFailed:
    return EngineFailed(REASONS.get(name) or f"The cluster did not count the pool: {name}.")
