from dataclasses import dataclass
from typing import ClassVar

import pytest

from annotation.choices.catalogue import CATALOGUE
from learner.estimators.softmax_steps import SoftmaxSteps
from learner.simulation.stream import StreamSettings, simulate_stream
from learner.simulation.trusted import TrustedSettings, simulate_trusted
from learner.strategies.blocks import block_rates
from learner.strategies.secret_blocks import SecretBlocks
from learner.strategies.secret_sample import BlocksChoice, SecretSample
from privacy.choices import Sound, parameter
from privacy.mechanisms.randomness import SimulationRandom
from tests.examples.estimator import Unhurried
from tests.pure.learner.simulation.test_stream import rows_of_two_digits
from tests.pure.learner.simulation.test_trusted import task_of

# Every record is asked about, so that all of the limit is there for the updates.
STREAM = {"training_epsilon": "1", "selection": "all", "estimator": "unhurried", "training_delta": ""}


@dataclass(frozen=True)
class AtOnce(SoftmaxSteps):
    name: ClassVar[str] = "at_once"
    sound: ClassVar[Sound] = Sound()


@dataclass(frozen=True)
class Parts(BlocksChoice):
    name: ClassVar[str] = "parts"
    label: ClassVar[str] = "secret parts"

    parts: int = parameter(8, at_least=2, label="Parts")

    @property
    def block_rates(self):
        return block_rates(1 / self.parts, 1)

    def strategy(self):
        return SecretSample(1 / self.parts)

    def of_block(self, block, rate):
        return SecretSample(rate)

    def planned(self, settings):
        return SecretBlocks(1 / self.parts, 1.0).planned(settings)


@pytest.fixture(autouse=True)
def declared():
    every = (Unhurried, AtOnce, Parts)
    CATALOGUE.register(*every)
    yield
    for choice in every:
        CATALOGUE.withdraw(choice)


def stream(**given):
    return StreamSettings.of("fraud-stream", STREAM | given, classes=("0", "9"), data_kind="table")


def test_a_stream_learns_by_it():
    assert stream(pace="0.5").learner(SimulationRandom(1)).pace == 0.5
    task = rows_of_two_digits(settings=STREAM | {"pace": "0.5"}, label_counts=(100,), seeds=1)
    point = simulate_stream("fraud-stream")(task).points[0]
    assert point.project.accuracy > point.constant.accuracy


def test_a_stream_refuses_what_it_refuses():
    with pytest.raises(ValueError, match="pace: Above 0 and at most 10"):
        stream(pace="11")
    with pytest.raises(ValueError, match="estimator: at_once makes no updates"):
        stream(estimator="at_once").learner(SimulationRandom(1))


def test_a_pool_is_trained_by_it():
    settings = TrustedSettings.of({"estimator": "unhurried", "pace": "0.5"}, n_classes=2)
    assert settings.training(0.5, prior=None, rng=SimulationRandom(1)).pace == 0.5
    given = {"estimator": "unhurried", "pace": "5", "selection": "parts", "parts": "4"}
    task = task_of(("music", "weather"), label_counts=(200,), seeds=1, settings=given)
    point = simulate_trusted(task).points[0]
    assert len(point.releases) == 4
    assert point.project.accuracy > point.constant.accuracy


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"estimator": "unhurried", "pace": "11"}, "pace: Above 0 and at most 10"),
        ({"estimator": "channel"}, "estimator: Only the answers of a crowd are randomised"),
        ({"estimator": "label_sets"}, "estimator: "),
        ({"selection": "parts", "parts": "1"}, "parts: Must be at least 2"),
        ({"selection": "random"}, "selection: only secret blocks are simulated"),
        ({"selection": "all"}, "selection: Only a stream asks about every record"),
        ({"parts": "4"}, "blocks need a selection_rate"),
        ({"screen_high": "0.2"}, "unknown settings screen_high"),
        ({"training_epsilon": "1"}, "unknown settings training_epsilon"),
    ],
)
def test_a_pool_refuses_what_no_simulation_can_play_by_its_name(given, said):
    with pytest.raises(ValueError, match=said):
        TrustedSettings.of(given, n_classes=2)
