import numpy as np
import pytest

from annotation.choices.policies import FixedBatches
from learner.pools import configuration as live
from learner.simulation.stream import StreamSettings
from privacy.mechanisms.randomness import SimulationRandom
from tests import streaming
from tests.factories import make_user

# As somebody gives them to the command; nothing leaves a setting out.
WRITTEN = {name: "" if value is None else str(value) for name, value in streaming.VISIBLE.items()}


def of(preset="fraud-stream", **given):
    given = WRITTEN | given
    return StreamSettings.of(preset, given, classes=("honest", "fraud"), data_kind="table")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("preset", "given"),
    [
        ("fraud-stream", {}),
        ("fraud-stream", {"update_policy": "flsw_hidden", "window_length": 200, "window_denominator": 20}),
        ("full-information-ogd", {}),
        ("confirm-or-reject", {"pool_epsilon": 8.0}),
    ],
)
def test_a_stream_costs_what_a_project_is_charged(preset, given):
    project = streaming.open_stream(make_user(), preset, **given)
    settings = of(preset, **{name: str(value) for name, value in given.items()})
    n_features = live.featurizer_of(project).dimension
    learner = settings.learner(SimulationRandom(1))
    assert settings.event(learner, n_features=n_features).to_json() == live.stream_event(project).to_json()
    assert type(settings.policy()) is type(live.policy_of(project))


def test_policies_go_by_the_names_that_projects_store():
    assert isinstance(of().policy(), FixedBatches)
    hidden = of(update_policy="flsw_hidden", window_denominator="25").policy()
    assert (hidden.denominator, hidden.selection_visible) == (25, False)


def test_texts_go_through_the_encoder():
    settings = StreamSettings.of("fraud-stream", {}, classes=("honest", "fraud"), data_kind="text")
    rows = settings.featurizer().transform(["send money now", "see you at noon"])
    assert rows.shape == (2, 128)
    assert np.linalg.norm(rows, axis=1).max() <= 1.0


def test_a_price_beyond_the_account_is_refused():
    settings = of()
    learner = settings.learner(SimulationRandom(1), whole=True)
    with pytest.raises(ValueError, match="more than the account holds"):
        settings.event(learner, n_features=3)
    settings.event(learner, n_features=3, chosen=False)
