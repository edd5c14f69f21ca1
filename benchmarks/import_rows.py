"""Import 1 M texts from CSV, against a raw COPY of the same rows into the same table, and against `bulk_create`.

Run: python benchmarks/import_rows.py [--rows N]

Limits: from the uploaded file to committed rows at least 100,000 rows a second where the raw COPY reaches that, at
least half the raw COPY, 5 times `bulk_create`, and memory that does not grow with the file. The database is an
embedded one of its own, with a site's settings.
"""

import argparse
import io
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

RATE_LIMIT, COPY_LIMIT, BULK_CREATE_LIMIT, MEMORY_LIMIT_MIB = 100_000, 0.5, 5, 64
BULK_CREATE_PART = 20
WORDS = ("play", "stop", "next", "call", "mum", "set", "an", "alarm", "for", "ten", "what", "is", "the", "weather")


def write_file(path: Path, rows: int) -> None:
    """Write short queries of 200,000 people, some with quoted commas and line ends."""
    rng = random.Random(1)
    with path.open("w", newline="") as file:
        file.write("id,person,text\n")
        for number in range(rows):
            text = " ".join(rng.choices(WORDS, k=8))
            if number % 50 == 0:
                text = f'"{text},\nplease"'
            file.write(f"{number},person-{rng.randrange(200_000)},{text}\n")


def seconds_of(run: Callable[[], object]) -> float:
    """Time one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def peak_mib() -> float:
    """Return the largest resident size so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(file: Path, rows: int) -> dict[str, float]:
    """Import, copy and create the same rows, each into a dataset of its own."""
    from django.contrib.auth.models import User
    from django.core.files import File
    from django.db import connection, transaction

    from annotation.models import Dataset, Record
    from annotation.services import datasets, projects

    project = projects.create_project(
        name="benchmark",
        preset="pool-experts",
        owner=User.objects.create_user("owner"),
        data_kind="text",
        classes=["yes", "no"],
        question="Which?",
    )

    def receive(path: Path) -> Dataset:
        with path.open("rb") as stream:
            return datasets.receive_upload(
                project=project, file=File(stream), name=path.name, mapping={"contributor": "person"}, send=False
            )

    def imported(path: Path) -> Dataset:
        dataset = receive(path)
        datasets.import_dataset(job_id=dataset.job_id)
        return dataset

    small = file.with_name("small.csv")
    write_file(small, max(rows // BULK_CREATE_PART, 1))
    imported(small)
    before = peak_mib()
    waiting = receive(file)
    import_seconds = seconds_of(lambda: datasets.import_dataset(job_id=waiting.job_id))
    extra = peak_mib() - before
    assert Record.objects.filter(dataset=waiting).count() == rows

    columns = "dataset_id, row_number, text, payload, contributor, label"
    same, others = receive(small), receive(small)
    held = io.BytesIO()
    with connection.cursor() as cursor:
        chosen = columns.replace("dataset_id", f"{same.pk}::bigint")
        with cursor.copy(
            f"COPY (SELECT {chosen} FROM annotation_record WHERE dataset_id = {waiting.pk} ORDER BY row_number)"
            " TO STDOUT (FORMAT BINARY)"
        ) as copy:
            for block in copy:
                held.write(block)

    def raw_copy() -> None:
        statement = f"COPY annotation_record ({columns}) FROM STDIN (FORMAT BINARY)"
        with transaction.atomic(), connection.cursor() as cursor, cursor.copy(statement) as copy:
            view = held.getbuffer()
            for start in range(0, len(view), 2**20):
                copy.write(view[start : start + 2**20])

    copy_seconds = seconds_of(raw_copy)
    part = rows // BULK_CREATE_PART
    read = Record.objects.filter(dataset=waiting).order_by("row_number")[:part]
    unsaved = [Record(dataset=others, row_number=row.row_number, text=row.text) for row in read]
    create_seconds = seconds_of(lambda: Record.objects.bulk_create(unsaved, batch_size=2000))
    return {
        "rows": rows,
        "import_rows_per_second": rows / import_seconds,
        "raw_copy_rows_per_second": rows / copy_seconds,
        "share_of_raw_copy": copy_seconds / import_seconds,
        "bulk_create_rows_per_second": part / create_seconds,
        "times_bulk_create": rows / import_seconds / (part / create_seconds),
        "import_extra_mib": extra,
    }


def main() -> int:
    """Measure, print one JSON object, and return 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    for name in ("DATABASE_URL", "CELERY_BROKER_URL", "STORAGE_URL"):
        os.environ.pop(name, None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
    with tempfile.TemporaryDirectory(prefix="dpal-import-") as folder:
        Path(folder).chmod(0o711)
        os.environ["DPAL_VAR"] = folder
        import django
        from django.core.management import call_command
        from django.db import connections

        from dpal_site.embedded import servers

        try:
            django.setup()
            call_command("migrate", verbosity=0, skip_checks=True)
            file = Path(folder) / "rows.csv"
            write_file(file, rows)
            report = measure(file, rows)
        finally:
            connections.close_all()
            servers.stop_started()
    print(json.dumps({name: round(value, 3) for name, value in report.items()}, indent=2))
    broken = (
        report["import_rows_per_second"] < RATE_LIMIT <= report["raw_copy_rows_per_second"]
        or report["share_of_raw_copy"] < COPY_LIMIT
        or report["times_bulk_create"] < BULK_CREATE_LIMIT
        or report["import_extra_mib"] > MEMORY_LIMIT_MIB
    )
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
