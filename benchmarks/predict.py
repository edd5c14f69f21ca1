"""Single-text predictions in one process, and over HTTP beside a view that does nothing: `predict.py [--seconds S]`.

Limit: at least 2,000 single-text predictions a second of one core's time.
"""

import argparse
import contextlib
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from uuid import uuid4

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks._embedded import own_site
from learner.features.text import HashingTextFeaturizer
from learner.linear_model import LinearModel

TARGET = 2000
CLIENTS = 4
FEATURES = 128
CLASSES = tuple("abcde")
WORDS = ("play", "jazz", "stop", "music", "what", "weather", "paris", "tomorrow", "call", "mum", "set", "alarm")


def model() -> LinearModel:
    rng = np.random.default_rng(1)
    return LinearModel(rng.normal(size=(len(CLASSES), FEATURES)), rng.normal(size=len(CLASSES)), CLASSES)


def texts() -> list[str]:
    rng = np.random.default_rng(2)
    return [" ".join(rng.choice(WORDS, size=rng.integers(2, 10))) for _ in range(1000)]


def rate(action: Callable[[str], object], seconds: float) -> float:
    inputs = cycle(texts())
    for _ in range(50):
        action(next(inputs))
    count, begun = 0, time.process_time()
    while (spent := time.process_time() - begun) < seconds:
        action(next(inputs))
        count += 1
    return count / spent


def fill() -> tuple[str, str]:
    from django.contrib.auth.models import User
    from django.db import transaction
    from django.db.models.functions import Now

    from annotation.projects.services import opening
    from annotation.work.services import tokens
    from learner.models import ModelRelease, ReleaseState, TrainingRun
    from learner.releases.services import publishing
    from privacy.accounting.events import RandomChoiceEvent
    from privacy.ledger import services as ledger

    owner = User.objects.create_user("engineer")
    project = opening.create_project(
        name="Bench",
        preset="pool-experts",
        owner=owner,
        data_kind="text",
        classes=list(CLASSES),
        question="What is wanted?",
    )
    reservation = ledger.reserve(
        account=project.pool_account, event=RandomChoiceEvent(), purpose="nothing", key=uuid4(), subject="bench"
    )
    with transaction.atomic():
        release = ModelRelease.objects.create(
            project=project,
            version=1,
            training_run=TrainingRun.objects.create(
                project=project, version=1, state="done", last_consensus_id=0, labels_used=0
            ),
            state=ReleaseState.RELEASED,
            released_at=Now(),
            estimator="logistic",
            event={},
            weights=model().to_json(),
            features=json.loads(HashingTextFeaturizer(FEATURES).to_json()),
            folder="none",
            digests={},
            guarantee=[],
            entry=ledger.commit(reservation=reservation, output_digest="0" * 64),
            labels_used=0,
        )
        publishing.print_limits(release, [project.pool_account])
    _, secret = tokens.create_token(
        user=owner, name="bench", scopes=[tokens.Scope.MODELS_READ], lifetime=timedelta(days=1)
    )
    return f"/api/v1/projects/{project.slug}/models/latest/predict", secret


def asked(address: str, path: str, seconds: float, token: str = "") -> float:
    """Let some clients ask one after the other, each over a connection it keeps, and return answers a second."""
    bodies = [json.dumps({"texts": [text]}) for text in texts()]
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    counts = [0] * CLIENTS
    together = threading.Barrier(CLIENTS + 1)
    failures: list[BaseException] = []

    def ask(number: int) -> None:
        connection = http.client.HTTPConnection(address, timeout=60)
        try:
            # The first requests load what the others use.
            for turn, body in enumerate(cycle(bodies)):
                if turn == 20:
                    together.wait()
                    end = time.perf_counter() + seconds
                if turn >= 20 and time.perf_counter() > end:
                    break
                connection.request("POST", path, body, headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    raise RuntimeError(f"answered {answer.status}")
                counts[number] += turn >= 20
        except BaseException as error:  # noqa: BLE001 - raised again below, on the main thread
            failures.append(error)
            together.abort()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    with contextlib.suppress(threading.BrokenBarrierError):
        together.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(counts) / (time.perf_counter() - begun)


def bare(seconds: float, port: int) -> float:
    """Serve the view that does nothing as the site is served, and return its answers a second."""
    from dpal_site.embedded import host

    command = [
        sys.executable,
        "-m",
        "waitress",
        f"--listen=127.0.0.1:{port}",
        "--threads=4",
        "benchmarks._bare_site:application",
    ]
    server = subprocess.Popen(command, cwd=Path(__file__).resolve().parents[1])
    try:
        assert host.wait_until(lambda: not host.port_is_free(port), 60), "waitress did not start"
        return asked(f"127.0.0.1:{port}", "/bare", seconds)
    finally:
        server.terminate()
        server.wait()


def measure(folder: Path, seconds: float) -> None:
    """Print all figures of one run, with the load they were taken under."""
    from dpal_site.embedded import host
    from dpal_site.embedded.processes import Supervisor
    from learner.rounds.services.suggestions import Predictor

    predictor = Predictor(model(), HashingTextFeaturizer(FEATURES))
    print(f"load {' '.join(f'{value:.1f}' for value in os.getloadavg())}; in process: this process's CPU time")
    single = rate(lambda text: predictor.predict([text]), seconds)
    print(f"in process, one text each     {single:10,.0f} a second   target {TARGET:,}: {single >= TARGET}")
    whole = texts()
    begun = time.process_time()
    for _ in range(20):
        predictor.predict(whole)
    print(f"in process, batches of 1,000  {20 * len(whole) / (time.process_time() - begun):10,.0f} texts a second")
    path, secret = fill()
    with Supervisor(folder / "log") as site:
        address = site.start_web(host.free_port(), workers=1).removeprefix("http://")
        site.wait_until_ready()
        routes = [asked(address, path, seconds, secret) for _ in range(2)]
    nothing = bare(seconds, host.free_port())
    print(f"over HTTP, the route          {max(routes):10,.0f} requests a second, four clients, one web process")
    print(f"over HTTP, a bare view        {nothing:10,.0f} requests a second")
    print(f"the route beside it           {max(routes) / nothing:10.2f} of that")
    print(f"load {' '.join(f'{value:.1f}' for value in os.getloadavg())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds a figure; default 5")
    options = parser.parse_args()
    with own_site("dpal-bench-", LOG_LEVEL="WARNING", API_REQUESTS_PER_MINUTE="1000000000") as folder:
        from dpal_site.operations.preparation import prepare_site

        prepare_site()
        measure(folder, options.seconds)


if __name__ == "__main__":
    main()
