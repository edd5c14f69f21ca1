import json

import numpy as np
import pytest

from annotation.errors import InvalidConfiguration
from learner.models import ModelRelease, Stream
from learner.rounds.services import streams
from privacy.accounting.event import event_from_json
from tests import learning, streaming
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
RUNNING = {
    "estimator": "running_sums",
    "selection": "all",
    "window_length": 5,
    "updates_per_release": 2,
    "updates_per_epoch": 3,
    "training_epsilon": 1.5,
    "training_delta": 1e-6,
    "moment_share": 0.1,
    "pool_delta": 2e-6,
}
RECORDS = 45


def test_every_update_reads_its_epoch_and_keeps_no_sums_without_noise(monkeypatch):
    project = streaming.open_stream(make_user(), **RUNNING)
    read = []
    real = streams._answers

    def remember(project, numbers):
        found = real(project, numbers)
        read.append((numbers, sum(map(len, found.values()))))
        return found

    monkeypatch.setattr(streams, "_answers", remember)
    streaming.run_to_release(project, make_user(), version=3, records=RECORDS)
    assert {number for numbers, _ in read for number in numbers} == {1, 2, 3, 4, 5, 6}
    assert all(numbers[0] in (1, 4) and count == 5 * len(numbers) for numbers, count in read)
    [reservation] = learning.entries(project, "reserve")
    event = event_from_json(reservation.event)
    assert (event.kind, event.update.kind, event.update.updates) == ("stream", "running_sums", 3)
    assert reservation.epsilon_nano == pytest.approx(1.5e9, rel=1e-6)
    assert ModelRelease.objects.filter(project=project).count() == 3
    state = Stream.objects.get().learner_state
    assert set(state) == {"total", "coef", "intercept", "prior", "updates", "n_features", "classes", "simulated"}
    assert (state["updates"], state["total"]["epochs"], state["total"]["place"]) == (6, 2, 0)
    assert np.isfinite(json.loads(json.dumps(state["coef"]))).all()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"pool_delta": 0.0}, "pool_delta"),
        ({"training_epsilon": 3.0}, "pool_epsilon"),
        ({"arrival": "pool"}, "estimator"),
    ],
)
def test_what_has_no_price_is_refused(changes, field):
    with pytest.raises(InvalidConfiguration, match=field):
        streaming.open_stream(make_user(), **RUNNING | changes)
