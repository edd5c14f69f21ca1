"""Memory and time of a round over a large pool, beside one that lists its candidates.

Run: python benchmarks/rounds.py [--rows N] [--choices NAMES] [--json FILE]

Limit: at most 48 bytes a candidate for each choice, from a million records on.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from _embedded import own_site
from _processes import Memory
from numpy.typing import NDArray

DIMENSION, ASKED, RATE = 32, 100, 0.1
LIMIT_BYTES, FROM_ROWS = 48, 1_000_000
MATRIX_ROWS = 65_536
CHOICES = {
    "top_c": {"selection": "top_c", "selection_epsilon": 0.25},
    "random": {"selection": "random"},
    "secret_sample": {"selection": "secret_sample", "selection_rate": RATE},
}
Found = dict[str, Any]


@contextmanager
def costs(found: Found, rows: int) -> Iterator[None]:
    """Note seconds, statements and the growth of memory of one block."""
    from django.db import connection

    statements = 0

    def counted(execute: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal statements
        statements += 1
        return execute(*arguments)

    with Memory(os.getpid(), every=0.01) as before:
        time.sleep(0.1)
    start, used = time.perf_counter(), time.process_time()
    with Memory(os.getpid(), every=0.01) as memory, connection.execute_wrapper(counted):
        yield
    grown = max(0.0, memory.largest_mib - before.largest_mib) * 2**20
    found |= {
        "wall_seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": round(time.process_time() - used, 2),
        "statements": statements,
        "bytes_a_candidate": round(grown / rows, 2),
    }


def made_up_model() -> Any:
    """Return weights that nobody learned."""
    from learner.linear_model import LinearModel

    return LinearModel(np.random.default_rng(1).normal(size=(1, DIMENSION)), np.zeros(1), ("music", "other"))


def open_pool(project: Any, rows: int) -> Any:
    from django.db import connection

    from annotation.models import Dataset, DatasetState, Job, WorkState
    from annotation.work.services import files
    from learner.features.matrix import write_matrix
    from learner.models import FeatureMatrix
    from learner.pools.configuration import featurizer_of

    read = Job.objects.create(project=project, kind="import", state=WorkState.DONE, finished_at=datetime.now(UTC))
    dataset = Dataset.objects.create(
        project=project, name="pool", role="pool", job=read, state=DatasetState.READY, row_count=rows
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO annotation_record (dataset_id, row_number, text)"
            " SELECT %s, place, 'play ' || place FROM generate_series(0, %s) AS place",
            [dataset.pk, rows - 1],
        )
    rng = np.random.default_rng(2)
    sizes = (min(MATRIX_ROWS, rows - start) for start in range(0, rows, MATRIX_ROWS))
    batches = (rng.normal(size=(size, DIMENSION)).astype(np.float32) / 6 for size in sizes)
    version = featurizer_of(project).version
    name = f"features/{project.pk}/{dataset.pk}-{version}.npy"
    with files.written_file(name) as path:
        written = write_matrix(path, batches, dimension=DIMENSION)
    FeatureMatrix.objects.create(
        dataset=dataset, version=version, file=name, sha256=written.sha256, rows=rows, dimension=DIMENSION
    )
    return dataset


def chosen_by(project: Any, name: str, rows: int) -> Found:
    from django.db.models.functions import Now

    from learner.models import Round
    from learner.rounds.services import loop, selection

    if name == "secret_sample":
        chosen = selection.start_block(project)
    else:
        chosen = Round.objects.create(project=project, number=1, strategy=name, requested=ASKED, created_at=Now())
    found: Found = {}
    with costs(found, rows):
        loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    if chosen.state != "done":
        raise RuntimeError(chosen.error)
    return found | {"asked": chosen.selected}


def listed(dataset: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return id and row of every candidate, read from the records in ranges."""
    from annotation.models import Record
    from learner.pools.records import integer_table

    parts = []
    for start in range(0, dataset.row_count, 500_000):
        inside = Record.objects.filter(dataset=dataset, row_number__gte=start, row_number__lt=start + 500_000)
        part = integer_table(inside.order_by("row_number").values_list("id", "row_number"), columns=2)
        parts.append((part[:, 0].copy(), part[:, 1].copy()))
    return np.concatenate([ids for ids, _ in parts]), np.concatenate([rows for _, rows in parts])


def listed_top_c(X: NDArray[np.float32], ids: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    from learner.strategies.top_c import TopC
    from privacy.mechanisms.randomness import SecureRandom
    from privacy.mechanisms.top_c import select_top_c

    scores = np.concatenate(list(TopC().uncertainties(X, rows, made_up_model())))
    order = np.argsort(rows)
    places = select_top_c(scores, picks=ASKED, scale=0.25, rng=SecureRandom())
    return ids[order[np.searchsorted(rows, rows[places], sorter=order)]]


def as_before(dataset: Any, choose: Callable[..., NDArray[np.int64]]) -> Found:
    """Return what it costs to list all candidates and choose among them."""
    from learner.pools import features

    found: Found = {}
    with costs(found, dataset.row_count):
        X = features.open_features(dataset)
        asked = choose(X, *listed(dataset))
    features.let_go_of_files(X)
    return found | {"asked": len(asked)}


def measure(rows: int, names: list[str]) -> Found:
    """Run every choice once, and the peers after them."""
    from django.contrib.auth.models import User

    from annotation.projects.services import opening
    from learner.rounds.services import selection

    selection.scoring_model = lambda chosen: made_up_model()
    owner = User.objects.create_user("owner")
    dataset: Any = None
    report: Found = {"rows": rows, "load_before": round(os.getloadavg()[0], 2)}
    for place, (name, settings) in enumerate((each, CHOICES[each]) for each in names):
        project = opening.create_project(
            name=f"rounds {place}",
            preset="pool-experts",
            owner=owner,
            data_kind="text",
            classes=["music", "other"],
            question="Which?",
            round_size=ASKED,
            labels_per_release=ASKED,
            feature_dimension=DIMENSION,
            pool_epsilon=20.0,
            maximum_releases=1,
            **settings,
        )
        dataset = open_pool(project, rows)
        report[name] = chosen_by(project, name, rows)
        print(name, report[name], file=sys.stderr, flush=True)
    report["listed top_c"] = as_before(dataset, listed_top_c)
    return report | {"load_after": round(os.getloadavg()[0], 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--choices", default=",".join(CHOICES), help="which of them, by comma")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with own_site("dpal-rounds-"):
        from celery import Celery

        Celery.send_task = lambda *arguments, **options: None
        report = measure(arguments.rows, arguments.choices.split(","))
    print(json.dumps(report, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    over = [name for name in CHOICES.keys() & report.keys() if report[name]["bytes_a_candidate"] > LIMIT_BYTES]
    return int(arguments.rows >= FROM_ROWS and bool(over))


if __name__ == "__main__":
    sys.exit(main())
