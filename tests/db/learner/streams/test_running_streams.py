import json

import numpy as np
import pytest

from annotation.errors import InvalidConfiguration
from dpal.recompute.running_sums import total_of
from dpal.recompute.transcript import Recorded, Transcript
from learner.models import ModelRelease, Stream
from learner.releases import storage
from learner.releases.artifacts.files import recompute_weights
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
    kept = {"total", "transcript", "coef", "intercept", "prior", "updates", "n_features", "classes", "simulated"}
    assert set(state) == kept
    total = state["total"]["values"]
    assert (state["updates"], total["epochs"], total["place"]) == (6, 2, 0)
    before = None
    for release in ModelRelease.objects.filter(project=project).order_by("version"):
        with storage.files_at_hand(release) as folder:
            assert recompute_weights(folder) == 0.0
            said = json.loads((folder / "transcript.json").read_text())
        transcript = Transcript.from_json(said)
        assert [query for query, *_ in transcript.answers] == ["moments", "class_sums"] * 2 + ["seed"]
        start = transcript.parameters["start"]
        # The total that a version begins with is that which the version before ended with.
        assert (start is None) == (before is None)
        assert before is None or all(np.array_equal(getattr(before, name), start[name]) for name in start)
        before = total_of(transcript.parameters, Recorded(transcript.answers))
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
