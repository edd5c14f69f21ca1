from dataclasses import dataclass
from typing import ClassVar

import pytest

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.randomizers import RandomizerChoice
from learner.simulation.crowd import CrowdSettings, simulate_crowd
from learner.simulation.reading import names_of, with_given
from learner.strategies.random import RandomChoice
from privacy.accounting.events import RandomizedAnswersEvent
from privacy.choices import Kind, parameter
from tests.pure.learner.simulation.test_crowd import OPEN_GATE, crowd_task, encode, prior


@dataclass(frozen=True)
class Hushed(RandomizerChoice):
    name: ClassVar[str] = "hushed"
    label: ClassVar[str] = "answers said quietly"

    loudness: float = parameter(0.5, above=0, at_most=1, label="Loudness")

    def event(self, *, n_classes: int, **circumstances: object) -> RandomizedAnswersEvent:
        return RandomizedAnswersEvent(4.0 * self.loudness, n_classes, "uniform")


@pytest.fixture
def declared():
    CATALOGUE.register(Hushed)
    yield
    CATALOGUE.withdraw(Hushed)


def test_texts_become_what_is_declared_and_nothing_leaves_a_setting_out():
    names = {"privacy_unit", "pool_epsilon", *names_of(Kind.STRATEGY)}
    given = {"repeat_votes": "1", "selection_rate": "0.2", "pool_epsilon": "3"}
    found = with_given({"privacy_unit": "record"}, given, names)
    assert found == {"repeat_votes": True, "selection_rate": 0.2, "pool_epsilon": 3.0, "privacy_unit": "record"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"gate_k": "4"}, "unknown settings gate_k; there are block_growth, block_hours"),
        ({"selection_rate": "half"}, "selection_rate must be of type float, got 'half'"),
        ({"repeat_votes": "perhaps"}, "repeat_votes must be of type bool"),
        ({"selection_rate": "1"}, r"selection_rate: Must be below 1, got 1\.0"),
        ({"selection": "all of them"}, "selection must be one of secret_sample"),
    ],
)
def test_what_is_refused_names_the_setting(given, said):
    with pytest.raises(ValueError, match=said):
        with_given({"selection": "secret_sample"}, given, names_of(Kind.STRATEGY))


def test_a_way_to_randomise_that_is_declared_here_is_simulated_with_its_parameters(declared):
    settings = OPEN_GATE | {"label_randomizer": "hushed", "loudness": "0.25"}
    found = simulate_crowd(crowd_task(settings=settings, seeds=1, label_counts=(12,)), encode=encode, prior=prior())
    assert found.accounts[1].epsilon == pytest.approx(1.0)
    assert not CrowdSettings.of(settings).answers_event(2).uses_prior
    with pytest.raises(ValueError, match="loudness: Must be at most 1"):
        CrowdSettings.of(settings | {"loudness": "2"})


def test_a_crowd_is_asked_by_what_is_chosen():
    settings = CrowdSettings.of({"selection": "random"})
    assert isinstance(settings.strategy(private=True), RandomChoice)
    doubting = CrowdSettings.of({"selection": "uncertainty", "uncertainty_measure": "margin"})
    assert doubting.strategy(private=False).measure == "margin"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"label_randomizer": "not_secret"}, "label_randomizer: only answers that are randomised"),
        ({"label_randomizer": ""}, "label_randomizer must be chosen"),
        ({"selection": "secret_sample"}, "selection: A crowd sees the questions"),
        ({"selection": "uncertainty", "repeat_votes": "true", "randomizations": "2"}, "repeat_votes: no question"),
        ({"estimator": "logistic"}, "unknown settings estimator"),
    ],
)
def test_what_no_simulated_crowd_can_play_is_refused_by_its_name(given, said):
    with pytest.raises(ValueError, match=said):
        CrowdSettings.of(given)
