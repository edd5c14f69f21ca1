"""An estimator that is declared here, and nowhere else, is named in simulations with its parameters."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from annotation.choices.catalogue import CATALOGUE
from learner.estimators.choice import EstimatorChoice
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM
from learner.estimators.softmax_steps import SoftmaxSteps
from learner.planning.simulation.stream import simulate_stream
from learner.planning.simulation.stream_settings import StreamSettings
from privacy.choices import Sound
from privacy.mechanisms.randomness import SimulationRandom
from privacy.parameters import parameter
from tests.pure.learner.planning.simulation.test_stream import rows_of_two_digits

# Every record is asked about, so that all of the limit is there for the updates.
STREAM = {"training_epsilon": "1", "selection": "all", "estimator": "unhurried", "training_delta": ""}


@dataclass(frozen=True)
class Unhurried(EstimatorChoice):
    """Short noisy steps."""

    name: ClassVar[str] = "unhurried"
    label: ClassVar[str] = "SVM by short noisy steps"
    words: ClassVar[str] = "support vector machine trained by short noisy steps"

    pace: float = parameter(2.0, above=0, at_most=10, label="Pace")

    def estimator(self, shape):
        return MiniBatchPrivateSVM(self.training_epsilon, classes=shape.classes, step_size=self.pace)


@dataclass(frozen=True)
class AtOnce(SoftmaxSteps):
    """What says that it learns from streams, and reads all labels again."""

    name: ClassVar[str] = "at_once"
    sound: ClassVar[Sound] = Sound()


@pytest.fixture(autouse=True)
def declared():
    CATALOGUE.register(Unhurried, AtOnce)
    yield
    CATALOGUE.withdraw(Unhurried)
    CATALOGUE.withdraw(AtOnce)


def stream(**given):
    return StreamSettings.of("fraud-stream", STREAM | given, classes=("0", "9"), data_kind="table")


def test_a_stream_learns_by_it():
    assert stream(pace="0.5").learner(SimulationRandom(1)).step_size == 0.5
    task = rows_of_two_digits(settings=STREAM | {"pace": "0.5"}, label_counts=(100,), seeds=1)
    point = simulate_stream("fraud-stream")(task).points[0]
    assert point.project.accuracy > point.constant.accuracy


def test_a_stream_refuses_what_it_refuses():
    with pytest.raises(ValueError, match="pace: Must be at most 10"):
        stream(pace="11")
    with pytest.raises(ValueError, match="estimator: at_once makes no updates"):
        stream(estimator="at_once").learner(SimulationRandom(1))
