"""The example of each kind, declared here and nowhere else: offered, stored, changed and refused in its own words."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.test import Client

from annotation.choices.catalogue import CATALOGUE
from annotation.models import Project
from privacy.choices import Choice
from tests import doors, learning
from tests.db.learner.answers.test_randomization import open_randomized
from tests.declaring import declaring
from tests.examples.estimator import Unhurried
from tests.examples.featurizer import CountsLetters
from tests.examples.gate import Halfway
from tests.examples.label_type import Shyly
from tests.examples.policy import Growing
from tests.examples.randomizer import Hushed
from tests.examples.strategy import LongFirst
from tests.factories import open_preset, write_settings
from tests.openings import look

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True)
class Example:
    """A choice, presets that offer it, how a project opens with it, and values of one of its parameters."""

    choice: type[Choice]
    presets: tuple[str, ...]
    opened: Callable[[User], Project]
    parameter: str
    allowed: int | float
    refused: int | float

    def rule(self) -> str:
        return doors.parameter_of(self.choice, self.parameter).rule.partition("{got}")[0]


def trusted(**settings: Any) -> Callable[[User], Project]:
    return lambda manager: learning.open_trusted(manager, **{"selection": "random", **settings})


POOL, STREAM, CROWD = "pool-experts", "fraud-stream", "voice-crowd"
EXAMPLES = (
    Example(LongFirst, (POOL,), trusted(selection="lengths"), "length_scale", 1.5, 4.0),
    Example(Unhurried, (POOL, STREAM), trusted(estimator="unhurried"), "pace", 1.5, 11.0),
    Example(CountsLetters, (POOL,), trusted(features="letters"), "alphabet", 22, 30),
    Example(
        Halfway,
        (CROWD,),
        lambda manager: open_preset(manager, CROWD, privacy_unit="record", gate_kind="halfway", gate_voices=10),
        "gate_voices",
        14,
        61,
    ),
    Example(Growing, (POOL, STREAM), trusted(update_policy="growing", labels_per_release=10), "growth", 5, 10),
    Example(
        Hushed,
        (CROWD,),
        lambda manager: open_randomized(manager, label_randomizer="hushed", loudness=0.5, answers_epsilon=None),
        "loudness",
        0.25,
        2.0,
    ),
)
every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.choice.name)


@pytest.fixture
def declared(example: Example) -> Iterator[None]:
    with declaring(example.choice):
        yield


@pytest.fixture
def project(declared: None, example: Example, manager: User) -> Project:
    return example.opened(manager)


@pytest.mark.parametrize(
    ("example", "preset"),
    [(one, preset) for one in EXAMPLES for preset in one.presets],
    ids=lambda one: one.choice.name if isinstance(one, Example) else one,
)
def test_the_opening_page_offers_it_with_its_parameters_and_refuses_in_its_words(
    declared: None, example: Example, preset: str, client: Client
) -> None:
    # The preset's own blocks would decide when a model is trained.
    around = {"selection": "random"} if preset == POOL and example.choice is not LongFirst else {}
    wrong = {"wrong": example.refused, "rule": example.rule(), "around": around}
    others = doors.opening_asks_for(client, example.choice, example.parameter, preset, **wrong)
    # The parameters of what was not chosen are not asked for.
    kind = example.choice.kind
    foreign = {one.name for other in CATALOGUE.of_kind(kind) for one in other.parameters()}
    assert foreign - {one.name for one in example.choice.parameters()} & others == set()


@every_example
def test_the_settings_page_changes_it_and_the_history_names_it(
    project: Project, example: Example, client: Client
) -> None:
    changed = (example.choice, example.parameter, example.allowed)
    doors.settings_page_changes(client, project, *changed, wrong=example.refused)


@every_example
def test_rest_lists_it_changes_it_and_refuses_in_its_words(project: Project, example: Example, manager: User) -> None:
    changed = (example.choice, example.parameter, example.allowed)
    listed = doors.rest_changes(manager, project, *changed, wrong=example.refused, rule=example.rule())
    assert listed["arrivals"] == sorted(example.choice.sound.arrivals)


@every_example
def test_the_database_takes_no_value_that_it_does_not_declare(project: Project, example: Example) -> None:
    section = example.choice.kind.section
    with pytest.raises(IntegrityError, match=rf"no choice declares this value of {section}\.{example.parameter}"):
        write_settings(project, **{example.parameter: example.refused})


def test_a_label_type_is_offered_where_it_has_a_proof(client: Client) -> None:
    with declaring(Shyly):
        for preset in ("pool-experts", "voice-crowd"):
            page = look(client, preset)
            assert Shyly.label in page.content.decode()
        stream = {"oracle": "trusted", "arrival": "stream", "data_kind": "text", "classes": ["a", "b"]}
        assert Shyly.broken_by(stream) == {"question_kind": "A stream cannot wait for the shy."}
