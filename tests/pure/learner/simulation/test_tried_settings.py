"""What a plan tries: one thing changed at a time, and what choosing leaves of the limit shared by as many models."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.label_randomizers import RandomizedConsensus
from learner.estimators.choice import PricedEstimator, PrivateEstimator, Shape
from learner.estimators.sums import PrivateSums
from learner.simulation.setup import series_epsilon
from learner.simulation.tried_settings import MOST_DIVIDED_CLASSES, left_out, settings_to_try, untried
from learner.strategies.random import Chance
from learner.strategies.secret_sample import BlocksChoice, SecretSample
from learner.strategies.top_c import TopC
from privacy.choices import Sound, parameter
from tests.pure.learner.simulation.test_curves import OPEN, SECRET

SETTINGS: dict[str, Any] = {
    "oracle": "trusted",
    "arrival": "pool",
    "data_kind": "text",
    "classes": ["a", "b"],
    "estimator": "planned",
    "selection": "secret_sample",
    "features": "planned",
    "text_columns": 128,
    "feature_dimension": 64,
}


def test_of_a_secret_sample_blocks_columns_and_models_are_tried() -> None:
    found = list(settings_to_try(SETTINGS, SECRET, 2.0))
    assert found[0] == {}
    assert {"selection_rate": 0.5, "maximum_releases": 1} in found
    assert {"selection_rate": 0.05, "block_growth": 15.0, "maximum_releases": None} in found
    assert {"text_columns": 64} in found
    assert {"text_columns": 256} in found
    models = [wanted["estimator"] for wanted in found if "estimator" in wanted]
    # Of two classes what is planned is this one.
    assert not {"planned", "softmax_steps"} & set(models)
    assert {"logistic_gaussian", "sums", "logistic"} <= set(models)


def test_of_many_classes_no_model_divides_epsilon_and_the_page_says_so() -> None:
    many = SETTINGS | {"classes": [str(number) for number in range(MOST_DIVIDED_CLASSES + 1)]}
    models = {wanted.get("estimator") for wanted in settings_to_try(many, SECRET, 2.0)}
    assert "sums" in models
    assert not {"logistic", "softmax_steps"} & models
    assert f"more than {MOST_DIVIDED_CLASSES} classes" in left_out(many)
    assert left_out(SETTINGS) == ""


def test_where_rounds_cost_what_they_leave_is_shared_by_as_many_models() -> None:
    setup = replace(OPEN, selection="top_c", parameters={"selection_epsilon": 0.5})
    settings = SETTINGS | {"selection": "top_c", "estimator": "logistic"}
    found = list(settings_to_try(settings, setup, 6.0))
    shared = found[0]
    spent = series_epsilon(setup, TopC(0.5)) + setup.releases * shared["training_epsilon"]
    assert 5.99 < spent <= 6.0
    assert {"selection": "secret_sample", "maximum_releases": None} in found
    # One model at the end of as many labels, whose rounds are all by chance.
    assert {"maximum_releases": 1, "labels_per_release": 300, "training_epsilon": 5.999} in found


@pytest.mark.parametrize("columns", [2, 256, 300])
def test_columns_stay_within_what_there_are(columns: int) -> None:
    found = [
        each["text_columns"]
        for each in settings_to_try(SETTINGS | {"text_columns": columns}, SECRET, 2.0)
        if "text_columns" in each
    ]
    assert all(2 <= wanted <= 256 and wanted != columns for wanted in found)
    assert (columns == 300) == (not found)


def test_where_nothing_is_tried_the_reason_is_said() -> None:
    open_crowd = SETTINGS | {"oracle": "crowd", "label_randomizer": ""}
    assert "all answers are paid for at once" in untried(open_crowd)
    assert list(settings_to_try(open_crowd, OPEN, 2.0)) == []
    assert untried(SETTINGS) == ""


@dataclass(frozen=True)
class Means(PricedEstimator):
    """What is declared here alone, of pools and of streams."""

    name: ClassVar[str] = "means_of_here"
    label: ClassVar[str] = "class means"
    words: ClassVar[str] = "class means"
    sound: ClassVar[Sound] = Sound(oracles=("trusted",))
    rank: ClassVar[int] = 0

    def estimator(self, shape: Shape) -> PrivateEstimator:
        return PrivateSums(self.training_epsilon, model="means", classes=shape.classes)


@dataclass(frozen=True)
class Parts(BlocksChoice):
    """Secret blocks, the first of which is so many parts of the pool."""

    name: ClassVar[str] = "parts_of_here"
    label: ClassVar[str] = "secret parts"
    tried: ClassVar[bool] = True

    parts: int = parameter(8, at_least=2, label="Parts")

    @property
    def block_rates(self) -> tuple[float, ...]:
        return (1 / self.parts, 0.5)

    def strategy(self) -> SecretSample:
        return SecretSample(1 / self.parts)

    def of_block(self, block: int, rate: float) -> SecretSample:
        return SecretSample(rate)

    def other_blocks(self) -> Iterator[dict[str, Any]]:
        yield {"parts": 2 * self.parts, "maximum_releases": None}


@dataclass(frozen=True)
class Coins(Chance):
    """Chance under another name, which rounds may be chosen by."""

    name: ClassVar[str] = "coins_of_here"


@dataclass(frozen=True)
class Louder(RandomizedConsensus):
    """Answers said another way, of which two sides are the same price."""

    name: ClassVar[str] = "louder_of_here"
    tried: ClassVar[tuple[str, ...]] = ("side",)

    side: str = parameter("left", options={"left": "left", "right": "right", "both": "both"}, label="Side")


@pytest.fixture
def declared() -> Iterator[None]:
    every = (Means, Parts, Coins, Louder)
    CATALOGUE.register(*every)
    yield
    for choice in every:
        CATALOGUE.withdraw(choice)


def test_what_is_declared_here_is_tried(declared: None) -> None:
    rounds = list(settings_to_try(SETTINGS | {"selection": "top_c"}, replace(OPEN, selection="random"), 6.0))
    assert {"selection": "parts_of_here", "maximum_releases": None} in rounds
    assert {"selection": "coins_of_here", "maximum_releases": OPEN.releases} in rounds
    models = [wanted["estimator"] for wanted in rounds if "estimator" in wanted]
    assert models[0] == "means_of_here"
    stream = SETTINGS | {"arrival": "stream", "selection": "all", "estimator": "running_sums"}
    asking_all = replace(OPEN, selection="all", parameters={}, stream=True)
    tried = [wanted["estimator"] for wanted in settings_to_try(stream, asking_all, 2.0) if "estimator" in wanted]
    assert tried == ["means_of_here"]


def test_blocks_declared_here_say_which_others_are_tried(declared: None) -> None:
    setup = replace(SECRET, selection="parts_of_here", parameters={"parts": 5})
    found = list(settings_to_try(SETTINGS | {"selection": "parts_of_here", "parts": 5}, setup, 2.0))
    assert {"parts": 10, "maximum_releases": None} in found
    assert not any("selection_rate" in wanted for wanted in found)


def test_answers_randomised_as_declared_here_say_what_is_tried(declared: None) -> None:
    crowd = SETTINGS | {"oracle": "crowd", "label_randomizer": "louder_of_here", "side": "left"}
    found = list(settings_to_try(crowd | {"response_classes": "top_k"}, OPEN, 2.0))
    assert [wanted for wanted in found if "side" in wanted] == [{"side": "right"}, {"side": "both"}]
    assert not any("response_classes" in wanted for wanted in found)
    usual = SETTINGS | {"oracle": "crowd", "label_randomizer": "randomized_consensus", "response_classes": "uniform"}
    assert {"response_classes": "top_k"} in list(settings_to_try(usual, OPEN, 2.0))


def test_what_is_planned_is_one_of_the_others_by_another_name() -> None:
    for n_classes in (2, 3):
        settings = SETTINGS | {"classes": [str(number) for number in range(n_classes)], "estimator": "softmax_steps"}
        assert {"estimator": "planned"} not in list(settings_to_try(settings, SECRET, 2.0))
