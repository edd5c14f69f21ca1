"""Post and examine a stream of table rows, against a plain COPY of the same rows with a numpy score of each.

Run: python benchmarks/stream.py [--records N]

Limit: a worker examines 20,000 records a second, from stored posts to stored questions: each is read, turned into
features, scored, given its private coin, and asked about or dropped. Posting, which checks and stores every record
in the web process, is shown beside it, and so are both in one process. The database is an embedded one of its own,
with a site's settings.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

RATE_LIMIT = 20_000
RECORDS_PER_POST = 5000
NUMBERS = 8
COLUMNS = [{"name": f"x{number}", "low": -1.0, "high": 1.0} for number in range(NUMBERS)] + [
    {"name": "country", "categories": ["NO", "SE", "DK", "FI"]}
]


def made_up(records: int) -> list[dict[str, object]]:
    """Return rows of eight numbers and a country."""
    rng = random.Random(1)
    countries = COLUMNS[-1]["categories"]
    return [
        {f"x{number}": rng.uniform(-1, 1) for number in range(NUMBERS)} | {"country": rng.choice(countries)}
        for _ in range(records)
    ]


def seconds_of(run: Callable[[], object]) -> float:
    """Time one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(records: int) -> dict[str, float]:
    """Send the same rows through a stream and through the peer."""
    import numpy as np
    from django.contrib.auth.models import User
    from django.db import connection, transaction

    from annotation.data.services import streams as posts
    from annotation.models import Query, Record
    from annotation.projects.services import opening
    from learner.models import Stream
    from learner.pools.configuration import featurizer_of
    from learner.rounds.services import streams as rounds_streams

    project = opening.create_project(
        name="benchmark",
        preset="fraud-stream",
        owner=User.objects.create_user("owner"),
        data_kind="table",
        columns=COLUMNS,
        classes=["honest", "fraud"],
        question="Is this fraud?",
        screen_high=0.02,
        screen_low=0.01,
        windows_ahead=30_000,
    )
    rows = made_up(records)

    def post() -> None:
        for start in range(0, records, RECORDS_PER_POST):
            posts.post_records(project=project, records=rows[start : start + RECORDS_PER_POST], key=f"{start}")

    def examine() -> None:
        rounds_streams.run_stream(project_id=project.pk)
        while rounds_streams.take_step(project=project):
            pass

    post_seconds, examine_seconds = seconds_of(post), seconds_of(examine)
    assert Stream.objects.get().next_slot == records
    asked = Query.objects.count()
    assert asked == Record.objects.count() > 0

    weights = np.random.default_rng(1).standard_normal(featurizer_of(project).dimension).astype(np.float32)
    featurizer = featurizer_of(project)

    def peer() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("CREATE TEMP TABLE peer (slot bigint, payload jsonb)")
            with cursor.copy("COPY peer FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(("int8", "jsonb"))
                for slot, row in enumerate(rows):
                    copy.write_row((slot, row))
        for start in range(0, records, 8192):
            block = featurizer.transform(rows[start : start + 8192])
            assert (np.abs(block @ weights) >= 0).all()

    peer_seconds = seconds_of(peer)
    return {
        "records": records,
        "asked": asked,
        "posted_per_second": records / post_seconds,
        "examined_per_second": records / examine_seconds,
        "records_per_second": records / (post_seconds + examine_seconds),
        "peer_records_per_second": records / peer_seconds,
        "times_peer": peer_seconds / (post_seconds + examine_seconds),
        "load_average": os.getloadavg()[0],
    }


def main() -> int:
    """Measure, print one JSON object, and return 1 if the limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    records = parser.parse_args().records
    for name in ("DATABASE_URL", "CELERY_BROKER_URL", "STORAGE_URL"):
        os.environ.pop(name, None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
    with tempfile.TemporaryDirectory(prefix="dpal-stream-") as folder:
        Path(folder).chmod(0o711)
        os.environ["DPAL_VAR"] = folder
        import django
        from django.core.management import call_command
        from django.db import connections

        from dpal_site.embedded import servers

        try:
            django.setup()
            call_command("prepare_database", verbosity=0, skip_checks=True)
            report = measure(records)
        finally:
            connections.close_all()
            servers.stop_started()
    print(json.dumps({name: round(value, 3) for name, value in report.items()}, indent=2))
    return int(report["examined_per_second"] < RATE_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
