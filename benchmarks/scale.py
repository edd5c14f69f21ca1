"""From 10 k to 10 M records by 1, 2 and 4 workers: import, gate, features, scores; what each costs, beside a peer.

Run: python benchmarks/scale.py [--most N] [--workers 1,2,4] [--seconds S] [--write]

Real Celery workers, Postgres and Valkey of a site of their own. Each size goes through every stage with every number
of workers: a CSV of short texts with their speakers is imported into a crowd project and passes its gate; then the same
records are handed to a trusted project, where one round makes the features and asks, and another one scores alone.
Coins are seeded, so that what comes out can be compared: imported rows, gate output, chosen records and feature file
must be the same bytes for every number of workers. That is the limit: the exit code is 1 where they differ.

Peers, in one process of the same run: COPY of ready lines into the same table, Postgres' own GROUP BY, the featuriser
over texts in memory, a numpy product with a partition over the feature file. Wall seconds, processor seconds of the
workers and of Postgres, the largest worker's own memory, bytes in the database, rows of the ledger and messages of the
broker are printed, with the load of the machine. What would not fit into `--seconds` is left out and named.

`--write` puts the tables, a drawing and the arithmetic up to a billion records into docs/results/scale.md, scale.svg
and scale.json.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from _gate_data import BATCH_ROWS, VOCABULARY, Data, K
from _scale_report import print_tables, write_report
from _scale_site import DIMENSION, Bench, Cell, forget_rows, timed
from _seeded_worker import FOLDER_PREFIX

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)


def write_csv(data: Data, rows: int, path: Path, ready: Path) -> None:
    """Write the upload, and the same rows as lines that COPY takes as they are."""
    with pa_csv.CSVWriter(path, schema=data.batch(0).schema) as writer, ready.open("wb") as lines:
        for number in range(-(-rows // BATCH_ROWS)):
            batch = data.batch(number).slice(0, min(BATCH_ROWS, rows - number * BATCH_ROWS))
            writer.write_batch(batch)
            names = ["row_number", "text", "contributor"]
            places = pa.array(np.arange(batch.num_rows) + number * BATCH_ROWS)
            person = pa.array([f"\\x{int(each):032x}" for each in batch.column(1).to_pylist()])
            table = pa.table([places, batch.column(0), person], names=names)
            pa_csv.write_csv(table, lines, pa_csv.WriteOptions(include_header=False))


def peers(bench: Bench, ready: Path, data: Data, rows: int) -> Cell:
    """Time COPY, GROUP BY and the featuriser, each in one process."""
    from django.db import connection

    from annotation.models import Dataset, DatasetState, Job, WorkState
    from dpal_site.owner import as_owner
    from learner.pools.configuration import featurizer_of

    project = bench.trusted()
    read = Job.objects.create(project=project, kind="import", state=WorkState.DONE, finished_at=datetime.now(UTC))
    dataset = Dataset.objects.create(
        project=project, name="peer", role="pool", job=read, state=DatasetState.READY, row_count=rows
    )

    def copy_in() -> None:
        with as_owner(), connection.cursor() as cursor:
            # The dataset's number is a column's default for as long as this takes.
            cursor.execute(f"ALTER TABLE annotation_record ALTER dataset_id SET DEFAULT {dataset.pk}")
            statement = "COPY annotation_record (row_number, text, contributor) FROM STDIN (FORMAT csv)"
            with cursor.copy(statement) as copy, ready.open("rb") as lines:
                while piece := lines.read(2**20):
                    copy.write(piece)
            cursor.execute("ALTER TABLE annotation_record ALTER dataset_id DROP DEFAULT")

    def group() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM (SELECT text FROM annotation_record WHERE dataset_id = %s"
                " GROUP BY text HAVING count(*) >= %s) frequent",
                [dataset.pk, K],
            )
            cursor.fetchone()

    featurizer = featurizer_of(project)
    counted = min(rows, BATCH_ROWS)
    texts = data.batch(0).column(0).slice(0, counted).to_pylist()
    batches = [texts[start : start + 8192] for start in range(0, counted, 8192)]
    found = {"import": timed(copy_in), "gate": timed(group)}
    made = timed(lambda: [featurizer.transform(batch) for batch in batches])
    forget_rows()
    return found | {"features": round(made * rows / counted, 3)}


def measure(folder: Path, most: int, workers: tuple[int, ...], seconds: float) -> Cell:
    """Run the grid from small to large, as far as the time allows."""
    started = time.monotonic()
    bench, data = Bench(folder), Data(VOCABULARY)
    cells: list[Cell] = []
    left_out: list[str] = []
    last: dict[int, float] = {}
    for rows in (size for size in SIZES if size <= most):
        path, ready = folder / "rows.csv", folder / "lines.csv"
        making = time.monotonic()
        write_csv(data, rows, path, ready)
        upload_bytes = path.stat().st_size
        peer = peers(bench, ready, data, rows)
        made = time.monotonic() - making
        for count in workers:
            begun = time.monotonic()
            # Up to a million most of it is starting workers; a second count takes no longer for the same rows.
            expected = last.get(rows) or (3 if rows <= 1_000_000 else 10) * last.get(rows // 10, 0.0)
            if begun - started + expected > seconds:
                left_out.append(f"{rows:,} rows by {count}")
                continue
            load = os.getloadavg()[0]
            stages = bench.run(path, count)
            peer["score"] = bench.peer_score
            last[rows] = time.monotonic() - begun
            for stage, cell in stages.items():
                cells.append(cell | {"stage": stage, "workers": count, "load": round(load, 2)})
                cells[-1] |= {"upload_bytes": upload_bytes, "peer_seconds": peer[stage]}
            print(f"{rows:,} rows, {count} worker(s): {last[rows]:.0f} s, load {load:.1f}", file=sys.stderr, flush=True)
        last.setdefault(rows, made)
    return {
        "cells": cells,
        "left_out": left_out,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "dimension": DIMENSION,
        # A text with its offset and its count, as the gate keeps it.
        "counted_bytes": 16 + float(np.mean([len(text) for text in data.texts.to_pylist()])),
        "seconds": round(time.monotonic() - started),
        "differing": differing(cells),
    }


def differing(cells: list[Cell]) -> list[str]:
    """Name the stages whose result depends on the number of workers."""
    digests: dict[tuple[str, int], set[str]] = {}
    for cell in cells:
        digests.setdefault((cell["stage"], cell["rows"]), set()).add(cell["digest"])
    return [f"{stage} of {rows:,} rows" for (stage, rows), found in digests.items() if len(found) > 1]


def main() -> int:
    """Measure, print, and return 1 where a result depends on the number of workers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest number of records")
    parser.add_argument("--workers", default="1,2,4", help="numbers of workers, by comma")
    parser.add_argument("--seconds", type=float, default=840, help="what would take longer is left out")
    parser.add_argument("--write", action="store_true", help="write docs/results/scale.*")
    parser.add_argument("--from", dest="source", type=Path, help="write the report of an earlier scale.json again")
    arguments = parser.parse_args()
    if arguments.source:
        write_report(json.loads(arguments.source.read_text()))
        return 0
    for name in ("DATABASE_URL", "CELERY_BROKER_URL", "STORAGE_URL"):
        os.environ.pop(name, None)
    # Rows are compared in the table they have in common with COPY; `gate_service.py` measures pools in columns.
    os.environ["POOLS_IN_DATABASE"] = "1"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
    os.environ["PYTHONPATH"] = "."
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        Path(folder).chmod(0o711)
        os.environ["DPAL_VAR"] = folder
        import django
        from django.core.management import call_command
        from django.db import connections

        from dpal_site.embedded import servers

        try:
            django.setup()
            call_command("prepare_database", verbosity=0, skip_checks=True)
            counts = tuple(int(each) for each in arguments.workers.split(","))
            report = measure(Path(folder), arguments.most, counts, arguments.seconds)
        finally:
            connections.close_all()
            servers.stop_started()
    print_tables(report)
    if arguments.write:
        write_report(report)
    return int(bool(report["differing"]))


if __name__ == "__main__":
    sys.exit(main())
