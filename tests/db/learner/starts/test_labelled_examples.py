import numpy as np
import pytest

from annotation.data.services.streams import post_records
from learner.linear_model import LinearModel
from learner.models import ModelRelease, Round, WarmStart
from learner.pools import starts
from learner.pools.configuration import featurizer_of, stream_event
from learner.rounds.services import streams, training
from learner.simulation.selectors import plan_forecast
from tests import learning, streaming
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def start_with(project, *, number=40, seed=9) -> None:
    texts = learning.sentences(number, seed=seed)
    rows = [[text, learning.CLASSES[learning.truth_of(text)]] for text in texts]
    learning.upload(project, rows, ["text", "label"], role="public_start")


def test_without_public_examples_the_first_round_is_random():
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    assert starts.start_model(project) is None
    learning.work_off(project)
    assert Round.objects.get().strategy == "random"


def test_the_first_round_scores_with_the_public_model_and_only_the_choice_is_paid():
    project = learning.open_trusted(make_user(), selection="top_c")
    learning.fill_trusted(project)
    start_with(project)
    assert plan_forecast(project).next_round.kind == "top_c"
    learning.work_off(project)
    chosen = Round.objects.get()
    assert (chosen.strategy, chosen.model, chosen.selected) == ("top_c", None, 12)
    assert [entry.mechanism for entry in learning.entries(project, "reserve")] == ["top_c"]
    stored = WarmStart.objects.get()
    assert stored.examples == 40
    assert not ModelRelease.objects.exists()


def test_the_public_model_is_made_of_public_rows_alone_and_once(monkeypatch):
    """Another pool under the same start gives the same weights; a second look trains nothing."""
    weights = []
    for seed in (1, 2):
        project = learning.open_trusted(make_user())
        learning.upload(project, [[text] for text in learning.sentences(50, seed=seed)], ["text"])
        start_with(project)
        weights.append(starts.start_model(project).to_json())
    assert weights[0] == weights[1]
    monkeypatch.setattr(starts, "_train", lambda dataset: 1 / 0)
    assert starts.start_model(project).to_json() == weights[1]
    assert learning.entries(project, "reserve") == []


def test_trainings_lean_on_the_public_model(monkeypatch):
    project = learning.open_trusted(make_user(), selection="random")
    learning.fill_trusted(project)
    start_with(project)
    seen = []
    real = training.release_estimator_of

    def remember(*args, prior, **kwargs):
        seen.append(prior)
        return real(*args, prior=prior, **kwargs)

    monkeypatch.setattr(training, "release_estimator_of", remember)
    learning.run_to_release(project, make_user(), version=1)
    start = LinearModel.from_json(WarmStart.objects.get().weights)
    assert np.array_equal(seen[0].coef, start.coef)


def start_stream(project, *, number=60) -> None:
    rows = [[str(row[name]) for name in row] + [streaming.CLASSES[row["amount"] > 0]] for row in streaming.rows(number)]
    learning.upload(project, rows, ["amount", "hour", "distance", "label"], role="public_start")


@pytest.mark.parametrize("preset", ["fraud-stream", "full-information-ogd"])
def test_public_examples_start_a_stream_that_is_charged_as_ever(preset, monkeypatch):
    project = streaming.open_stream(make_user(), preset)
    start_stream(project)
    start = LinearModel.from_json(starts.start_model(project).to_json())
    scored_with = []
    real = streams.examine
    monkeypatch.setattr(
        streams, "examine", lambda *a, model, **k: scored_with.append(model) or real(*a, model=model, **k)
    )
    post_records(project=project, records=streaming.rows(40, seed=3))
    streaming.work_off(project)
    first = scored_with[0]
    assert first.coef / np.linalg.norm(first.coef) == pytest.approx(start.coef / np.linalg.norm(start.coef))
    tested = streaming.rows(200, seed=99)
    right = first.predict(featurizer_of(project).transform(tested)) == np.array(
        [streaming.CLASSES[row["amount"] > 0] for row in tested]
    )
    assert right.mean() > 0.9
    assert not ModelRelease.objects.exists()
    reservation = learning.entries(project, "reserve")
    assert [entry.event for entry in reservation] == [stream_event(project).to_json()]
