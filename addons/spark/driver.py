"""Driver of a cluster's job, a process of its own: orders in JSON on standard input, results on standard output."""

import base64
import importlib.util
import json
import os
import queue
import re
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import pyarrow as pa

from addons.spark import steps as gate_steps
from addons.spark.batches import batch_made
from addons.spark.jobs import KERNEL, FileReader, gate_told
from addons.spark.steps import FAILED_WITH, PLACED_PAIRS, Steps, spark_schema
from learner.features.batches import BatchStep
from privacy.gate.engine import PoolFile, wants_contributors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOOK_AGAIN_SECONDS: Final = 0.5
# Masters that send nothing between processes.
ONE_PROCESS: Final = "local["
BETWEEN_PROCESSES: Final = ("spark.authenticate", "spark.network.crypto.enabled")
SETTINGS: Final = {
    "spark.app.name": "dpal",
    # What is spilled, shuffled or kept on disk is as private as the records.
    "spark.io.encryption.enabled": "true",
    # How many rows went where is private, too.
    "spark.eventLog.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(gate_steps.BATCH_ROWS),
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # A share stays whole, whatever its size.
    "spark.sql.adaptive.enabled": "false",
}


class PlainCluster(Exception):
    """The processes of the cluster would talk to each other in plain."""


class OtherVersions(Exception):
    """Executors have other libraries than the site."""


class Answers:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._lock = stream, threading.Lock()

    def tell(self, **said: Any) -> None:
        self.tell_with(b"", **said)

    def hand_over(self, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue()
        self.tell_with(content, bytes=content.size)

    def tell_with(self, content: bytes | pa.Buffer, **said: Any) -> None:
        with self._lock:
            self._stream.write(json.dumps(said).encode() + b"\n")
            self._stream.write(content)
            self._stream.flush()


class Orders:
    """Lines of standard input; where it ends while something runs, the process ends with it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._orders: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._taken = False
        # What is left of the process where nobody is left to clear up after it.
        self.folder = ""
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    @property
    def idle(self) -> bool:
        return not self._orders.unfinished_tasks

    def next(self) -> dict[str, Any] | None:
        if self._taken:
            self._orders.task_done()
        self._taken = True
        return self._orders.get()

    def _read(self, stream: IO[bytes]) -> None:
        # One thread reads, names the folder and hears of the end: none of the three comes ahead of another.
        for line in stream:
            order = json.loads(line)
            self.folder = order.get("folder", self.folder)
            self._orders.put(order)
        if not self.idle:
            self.leave()
        self._orders.put(None)

    def leave(self) -> None:
        """End at once: Spark's own process hears of it and puts its folders away."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(1)


def main() -> None:
    # Spark's own process inherits standard output and may write there.
    answers = Answers(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    orders = Orders(sys.stdin.buffer)
    order = orders.next()
    assert order is not None
    step = BatchStep(**order["step"]) if "step" in order else None
    packages = {*KERNEL, *order["needs"].split()}
    try:
        session = open_session(order["master"], Path(order["folder"]), sorted(packages))
    except Exception as error:  # noqa: BLE001 - told by its class
        answers.tell(failed=error_name(error))
        raise SystemExit(1) from None
    answers.tell(ready=True)
    if step is not None:
        make_batches(session, step, orders, answers, at_once=order["at_once"])
    else:
        count_pools(session, orders, answers)
    session.stop()
    shutil.rmtree(orders.folder, ignore_errors=True)


def open_session(master: str, folder: Path, packages: Iterable[str] = KERNEL) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415 - optional

    builder = SparkSession.builder.master(master)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    stands = session.sparkContext.getConf()
    if not master.startswith(ONE_PROCESS) and any(stands.get(name) != "true" for name in BETWEEN_PROCESSES):
        raise PlainCluster
    session.sparkContext.addPyFile(str(packed(folder, packages)))
    rows = session.range(0, 1, 1, 1).mapInArrow(gate_steps.versions, "found string").collect()
    (here,) = gate_steps.versions(iter([pa.record_batch([[0]], names=["id"])]))
    if rows[0][0] != here.column(0)[0].as_py():
        raise OtherVersions
    return session


def packed(folder: Path, packages: Iterable[str] = KERNEL) -> Path:
    """Write the code of some packages into one file, so that executors run the very code that the site runs."""
    target = folder / "kernel.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for name in packages:
            found = importlib.util.find_spec(name)
            assert found is not None
            assert found.origin is not None
            package = Path(found.origin).parent
            for path in sorted(package.rglob("*.py")):
                archive.write(path, path.relative_to(package.parent))
    return target


def count_pools(session: "SparkSession", orders: Orders, answers: Answers) -> None:
    while (job := orders.next()) is not None:
        try:
            if "look" in job:
                look(session, FileReader(**job["reader"]), PoolFile(**job["look"]))
                answers.tell(seen=True)
                continue
            table = run_counting(session, job, answers)
        except Exception as error:  # noqa: BLE001 - told by its class
            answers.tell(failed=error_name(error))
        else:
            answers.hand_over(table)


def look(session: "SparkSession", reader: FileReader, file: PoolFile) -> None:
    session.range(0, 1, 1, 1).mapInArrow(partial(gate_steps.seen, reader, file), "id bigint").collect()


def run_counting(session: "SparkSession", job: dict[str, Any], answers: Answers) -> pa.Table:
    files = [PoolFile(**each) for each in job["files"]]
    rows = sum(file.row_count for file in files)
    gate = gate_told(job["gate"])
    steps = Steps(
        gate=gate,
        files=files,
        reader=FileReader(**job["reader"]),
        key=bytes.fromhex(job["key"]),
        shares=max(1, -(-rows // job["share_rows"])),
    )
    frame, over = counts_frame(session, steps), threading.Event()
    watching = threading.Thread(target=_watch, args=(session, len(files), rows, answers, over), daemon=True)
    watching.start()
    try:
        return frame.toArrow().cast(gate.counts_schema)
    finally:
        over.set()
        watching.join()


def make_batches(session: "SparkSession", step: BatchStep, orders: Orders, answers: Answers, *, at_once: int) -> None:
    """Have executors make each batch that comes, a task each, and hand over what they make in the order of batches."""
    context, make = session.sparkContext, partial(batch_made, step)
    under_way: queue.SimpleQueue[Future[list[bytes]] | None] = queue.SimpleQueue()

    def made(content: bytes) -> list[bytes]:
        found: list[bytes] = context.parallelize([content], 1).map(make).collect()
        return found

    def answer() -> None:
        while (one := under_way.get()) is not None:
            try:
                (content,) = one.result()
            except Exception as error:  # noqa: BLE001 - told by its class
                answers.tell(made={"error": error_name(error)})
            else:
                answers.tell_with(content, made={"bytes": len(content), "wide": context.defaultParallelism})

    threads = ThreadPoolExecutor(at_once)
    answering = threading.Thread(target=answer, daemon=True)
    answering.start()
    while (order := orders.next()) is not None:
        under_way.put(threads.submit(made, base64.b64decode(order["batch"])))
    under_way.put(None)
    answering.join(LOOK_AGAIN_SECONDS)
    if answering.is_alive():
        # Nobody waits for what is still being made.
        orders.leave()


def counts_frame(session: "SparkSession", steps: Steps) -> "DataFrame":
    """Return the counts of a gate as Spark computes them: digests of files, contributors if capped, then texts."""
    numbers = session.range(0, len(steps.files), 1, len(steps.files))
    texts = spark_schema(steps.texts_schema)
    # Spark counts a function's parameters, and would count a method's own `self` as one.
    if wants_contributors(steps.gate):
        pairs = numbers.mapInArrow(steps.digest, spark_schema(PLACED_PAIRS))
        rows = _by_share(pairs, steps.shares).applyInArrow(lambda pairs: steps.cap(pairs), texts)
    else:
        rows = numbers.mapInArrow(steps.digest, texts)
    schema = spark_schema(steps.gate.counts_schema)
    return _by_share(rows, steps.shares).applyInArrow(lambda rows: steps.count(rows), schema)


def error_name(error: BaseException) -> str:
    found = re.search(rf"{FAILED_WITH}(\w+)", str(error))
    return found[1] if found else type(error).__name__


def _by_share(frame: "DataFrame", shares: int) -> Any:
    return frame.repartition(shares, "share").groupBy("share")


def _watch(session: "SparkSession", files: int, rows: int, answers: Answers, over: threading.Event) -> None:
    tracker, reported = session.sparkContext.statusTracker(), 0
    while not over.wait(LOOK_AGAIN_SECONDS):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        first = min((each for each in stages if each is not None), key=lambda each: each.stageId, default=None)
        read = rows * first.numCompletedTasks // files if first is not None and first.numTasks == files else reported
        if read > reported:
            reported = read
            answers.tell(read=read)


if __name__ == "__main__":
    main()
