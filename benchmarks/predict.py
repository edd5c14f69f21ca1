"""Trying a release: single texts a second in one process, and over HTTP beside a view that does nothing.

    .venv/bin/python benchmarks/predict.py

In process: at least 2,000 single-text predictions a second of one core's time. Over HTTP, in the same run: the route's
requests a second beside a bare Django view under the same server settings, through Django's own request handler.
"""

import os
import time
from collections.abc import Callable
from itertools import cycle

os.environ.setdefault("DPAL_NO_SERVERS", "1")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import django
import numpy as np

django.setup()

from django.conf import settings  # noqa: E402 - the settings come first
from django.http import HttpRequest, HttpResponse, JsonResponse  # noqa: E402 - the settings come first
from django.test import Client, override_settings  # noqa: E402 - the settings come first
from django.urls import path  # noqa: E402 - the settings come first
from ninja import NinjaAPI  # noqa: E402 - the settings come first

from learner.api import PredictIn, PredictOut  # noqa: E402 - the settings come first
from learner.features.text import HashingTextFeaturizer  # noqa: E402 - the settings come first
from learner.linear_model import LinearModel  # noqa: E402 - the settings come first
from learner.services.predictions import Predictor  # noqa: E402 - the settings come first

TARGET = 2000
SECONDS = 5.0
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
    settings.ALLOWED_HOSTS = ["testserver"]
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[]):
        client = Client()
        route = rate(lambda text: client.post("/api/predict", {"texts": [text]}, content_type="application/json"))
        empty = rate(lambda text: client.post("/bare", {"texts": [text]}, content_type="application/json"))
    print(f"request handler, predict      {route:10,.0f} a second")
    print(f"request handler, bare view    {empty:10,.0f} a second   predict costs {empty / route:.2f} times as much")


if __name__ == "__main__":
    main()
