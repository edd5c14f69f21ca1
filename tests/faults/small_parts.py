"""A Celery worker that cuts work into parts far too small to be worth it, and tells Postgres which process it is.

Run: python -m tests.faults.small_parts --concurrency 2 ... Nobody is called to help: whoever tests sends helpers when
they are wanted. Its coins can be predicted, so that what comes out can be compared.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

SEED = 7
SALT = bytes(range(32))
BLOCK = 16
# Whoever reads the rows of a part waits first until nobody holds this lock and the part's number together.
READING_LOCK = 6000


def predict_coins(patch: Callable[[Any, str, Any], None]) -> None:
    from annotation.gates import services as gates  # noqa: PLC0415 - Django is set up by now
    from learner.rounds.services import loop  # noqa: PLC0415
    from learner.strategies import top_c  # noqa: PLC0415
    from privacy.mechanisms.randomness import SimulationRandom  # noqa: PLC0415

    patch(gates, "new_key", lambda: SALT)
    patch(loop, "SecureRandom", lambda: SimulationRandom(SEED))
    patch(top_c, "default_block_rows", lambda dimension, outputs: BLOCK)


def cut_small() -> None:
    from annotation.data.readers import sources  # noqa: PLC0415
    from annotation.data.services import import_parts, pool_files  # noqa: PLC0415
    from learner.pools import features  # noqa: PLC0415

    small = {
        (sources, "CHUNK_BYTES"): 256,
        (import_parts, "PART_BYTES"): 4000,
        (pool_files, "PART_ROWS"): 200,
        (features, "BATCH_ROWS"): 8,
        (features, "PART_BATCHES"): 4,
        (features, "MOST_PROCESSES"): 2,
    }
    for (module, name), value in small.items():
        setattr(module, name, value)
    import_parts.MOST_HELPERS = 0


def wait_where_held() -> None:
    from django.db import connection  # noqa: PLC0415

    from learner.pools import features  # noqa: PLC0415

    real = features.sent_batches

    def held(dataset: Any, *, first: int, stop: int) -> Any:
        key = READING_LOCK + first // (features.PART_BATCHES * features.BATCH_ROWS)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock_shared(%s), pg_advisory_unlock_shared(%s)", [key, key])
        yield from real(dataset, first=first, stop=stop)

    features.sent_batches = held


def tell_postgres() -> None:
    from celery.signals import task_prerun  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415
    from django.db.backends.signals import connection_created  # noqa: PLC0415

    at_work = {"task": ""}

    def name_session(connection: Any, **given: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('application_name', %s, false)", [f"{os.getpid()} {at_work['task']}"])

    def note_task(sender: Any, **given: Any) -> None:
        at_work["task"] = sender.name.rpartition(".")[2]
        if connection.connection is not None:
            name_session(connection)

    task_prerun.connect(note_task, weak=False)
    connection_created.connect(name_session, weak=False)


def main() -> None:
    import django  # noqa: PLC0415

    django.setup()
    predict_coins(setattr)
    cut_small()
    wait_where_held()
    tell_postgres()
    from dpal_site.celery import app  # noqa: PLC0415

    app.start(["worker", *sys.argv[1:]])


if __name__ == "__main__":
    main()
