"""Trying a release: single texts a second in one process, and over HTTP beside a view that does nothing.

    .venv/bin/python benchmarks/predict.py

In process: at least 2,000 single-text predictions a second of one core's time. Over HTTP, in the same run: requests a
second from four clients to one gunicorn process, of the route beside a view that does nothing. The served route parses,
predicts and answers; it has no token and asks no database, whose price `benchmarks/label_loop.py` shows.
"""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

os.environ.setdefault("DPAL_NO_SERVERS", "1")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import django
import numpy as np

django.setup()

from django.conf import settings  # noqa: E402 - the settings come first
from django.core.handlers.wsgi import WSGIHandler  # noqa: E402 - the settings come first
from django.http import HttpRequest, HttpResponse, JsonResponse  # noqa: E402 - the settings come first
from django.urls import path  # noqa: E402 - the settings come first
from ninja import NinjaAPI  # noqa: E402 - the settings come first

from dpal_site.embedded import host  # noqa: E402 - the settings come first
from learner.api import PredictIn, PredictOut  # noqa: E402 - the settings come first
from learner.features.text import HashingTextFeaturizer  # noqa: E402 - the settings come first
from learner.linear_model import LinearModel  # noqa: E402 - the settings come first
from learner.services.predictions import Predictor  # noqa: E402 - the settings come first

TARGET = 2000
SECONDS = 5.0
CLIENTS = 4
WORDS = (
    "play",
    "jazz",
    "stop",
    "music",
    "what",
    "weather",
    "paris",
    "tomorrow",
    "call",
    "mum",
    "set",
    "alarm",
    "seven",
)


def predictor() -> Predictor:
    """Make a model of five classes over 128 hashed features."""
    rng = np.random.default_rng(1)
    model = LinearModel(rng.normal(size=(5, 128)), rng.normal(size=5), tuple("abcde"))
    return Predictor(model, HashingTextFeaturizer(128))


TRIED = predictor()
bench_api = NinjaAPI(urls_namespace="bench")


@bench_api.post("predict", response=PredictOut)
def predict(request: HttpRequest, body: PredictIn) -> dict[str, object]:
    """The route without its look-ups in the database: parsing, prediction, answer."""
    labels, probabilities = TRIED.predict(body.texts or [])
    return {"version": 1, "classes": list("abcde"), "labels": labels, "probabilities": probabilities.tolist()}


def bare(request: HttpRequest) -> HttpResponse:
    """What Django costs where nothing is done."""
    return JsonResponse({"version": 1})


urlpatterns = [path("api/", bench_api.urls), path("bare", bare)]
settings.ROOT_URLCONF = "benchmarks.predict"
settings.MIDDLEWARE = []
application = WSGIHandler()


def texts() -> list[str]:
    """Return short commands of two to nine words."""
    rng = np.random.default_rng(2)
    return [" ".join(rng.choice(WORDS, size=rng.integers(2, 10))) for _ in range(1000)]


def rate(action: Callable[[str], object]) -> float:
    """Return how often `action` runs in a second of this process's own time."""
    inputs = cycle(texts())
    for _ in range(50):
        action(next(inputs))
    count, begun = 0, time.process_time()
    while (spent := time.process_time() - begun) < SECONDS:
        action(next(inputs))
        count += 1
    return count / spent


def main() -> None:
    """Print all figures of one run, with the load they were taken under."""
    print(f"load {' '.join(f'{value:.1f}' for value in os.getloadavg())}; seconds are this process's CPU time")
    single = rate(lambda text: TRIED.predict([text]))
    print(f"in process, one text each     {single:10,.0f} a second   target {TARGET:,}: {single >= TARGET}")
    whole = texts()
    begun = time.process_time()
    for _ in range(20):
        TRIED.predict(whole)
    print(f"in process, batches of 1,000  {20 * len(whole) / (time.process_time() - begun):10,.0f} texts a second")
    route, empty = served("/api/predict", "/bare")
    print(f"over HTTP, predict            {route:10,.0f} requests a second, four clients, one web process")
    print(f"over HTTP, a bare view        {empty:10,.0f} requests a second; predict reaches {route / empty:.2f} of it")


def served(*paths: str) -> list[float]:
    """Serve this module with gunicorn and return the requests a second that each path answers."""
    port = host.free_port()
    command = [sys.executable, "-m", "gunicorn", "benchmarks.predict:application", "--bind", f"127.0.0.1:{port}"]
    command += ["--worker-class", "gthread", "--threads", "4", "--keep-alive", "30", "--log-level", "error"]
    server = subprocess.Popen(command, cwd=Path(__file__).resolve().parents[1], env=os.environ | {"PYTHONPATH": "."})
    try:
        assert host.wait_until(lambda: not host.port_is_free(port), 30), "gunicorn did not start"
        time.sleep(1)
        return [asked(port, path) for path in paths]
    finally:
        server.terminate()
        server.wait()


def asked(port: int, path: str, clients: int = CLIENTS) -> float:
    """Let some clients ask one after the other, each over a connection it keeps, and return answers a second."""
    bodies = [json.dumps({"texts": [text]}) for text in texts()]
    counts = [0] * clients
    # The first request loads what the others use.
    first = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    first.request("POST", path, bodies[0], {"Content-Type": "application/json"})
    assert first.getresponse().status == 200
    end = time.perf_counter() + SECONDS

    def ask(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        for body in cycle(bodies):
            if time.perf_counter() > end:
                break
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            counts[number] += 1
        connection.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


if __name__ == "__main__":
    main()
