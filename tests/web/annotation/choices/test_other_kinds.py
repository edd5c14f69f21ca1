from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest
from django.test import Client
from django.urls import reverse

from annotation.choices.answer_budget import AnswerBudget
from annotation.choices.person_limits import PersonLimits
from annotation.choices.quality_checks import QualityChecks
from annotation.choices.question_plan import QuestionPlan
from annotation.models import Project
from learner.estimators.choice import PricedEstimator
from learner.estimators.logistic import PrivateLogisticRegression
from learner.features.choice import FeaturesChoice
from learner.features.text import HashingTextFeaturizer
from learner.pools.configuration import estimator_of, featurizer_of
from learner.simulation import plan_setups
from privacy.choices import Choice, Kind, Sound, parameter
from privacy.wording import as_message
from tests import learning
from tests.clients import browser_of
from tests.declaring import declaring
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True)
class Doubled(FeaturesChoice):
    name: ClassVar[str] = "twice_the_hashed_words"
    label: ClassVar[str] = "twice as many hashed words"
    sound: ClassVar[Sound] = Sound(data_kinds=("text",))
    times: int = parameter(2, at_least=1, at_most=4, label="Times as many", help="Columns are multiplied.")

    def featurizer(self, shape):
        return HashingTextFeaturizer(self.times * shape.dimension, normalizer=shape.normalizer)


@dataclass(frozen=True)
class Steep(PricedEstimator):
    name: ClassVar[str] = "steep"
    label: ClassVar[str] = "logistic regression, steeply regularised"
    words: ClassVar[str] = "logistic regression with a steep objective"
    sound: ClassVar[Sound] = Sound(arrivals=("pool",))
    steepness: float = parameter(4.0, above=0, below=50, label="Steepness", help="Public constant.")

    def estimator(self, shape):
        return PrivateLogisticRegression(
            self.training_epsilon,
            self.steepness,
            "objective",
            classes=shape.classes,
            norm_bound=shape.norm_bound,
            intercept_scaling=shape.intercept_scaling,
            prior=shape.prior,
        )


@dataclass(frozen=True)
class Words(Choice):
    kind: ClassVar[Kind] = Kind.CLASSES
    name: ClassVar[str] = "words"
    label: ClassVar[str] = "words about the classes"
    stays: ClassVar[bool] = False
    class_words: tuple[str, ...] = parameter((), label="Words about the classes", help="A line for each class.")

    def event(self) -> None:
        return None

    def rules(self, settings):
        wrong = self.class_words and len(self.class_words) != len(settings["classes"])
        return {"class_words": as_message("Write a line for each class.")} if wrong else {}


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    with declaring(Doubled, Steep, Words):
        yield


def values_of(client: Client, url: str) -> dict[str, object]:
    form = client.get(url).context["form"]
    values = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in values.items() if value not in (None, False, [])}


def test_a_form_asks_for_each_of_them_and_stores_what_was_chosen():
    manager = make_user("manager", is_superuser=True)
    client = browser_of(manager)
    url = reverse("annotation:new_project", args=["voice-crowd"])
    chosen = {"selection": "uncertainty", "features": "twice_the_hashed_words", "estimator": "steep"}
    chosen |= {"label_randomizer": "", "gate_kind": "k_anonymity"}
    task = {"name": "All", "question": "What?", "classes": "a\nb"}
    asked = client.post(url, values_of(client, url) | task | chosen | {"show": "1"})
    labels = {str(field.label) for field in asked.context["form"].fields.values()}
    assert {"Times as many", "Steepness", "Words about the classes"} <= labels
    sent = {name: asked.context["form"][name].value() for name in asked.context["form"].fields}
    sent = {name: value for name, value in sent.items() if value not in (None, False, [])}
    sent |= {"shown": asked.context["form"].shown, "times": 3, "steepness": 9}
    wrong = client.post(url, sent | {"class_words": "only one"})
    assert {"class_words"} <= wrong.context["form"].errors.keys()
    opened = client.post(url, sent | {"class_words": "sport and games\nmusic"})
    assert opened.status_code == 302, opened.context["form"].errors
    project = Project.objects.get()
    document = project.configuration.document
    # How people label and what it may cost stand beside them, as they are declared.
    beside = {each.name for choice in (QuestionPlan, PersonLimits, QualityChecks) for each in choice.parameters()}
    labelling = {name: document["labelling"].pop(name) for name in beside | {"question_kind"}}
    assert (labelling["question_kind"], labelling["overlap"]) == ("choose", 3)
    assert document.pop("budget").keys() == {each.name for each in AnswerBudget.parameters()}
    assert document == {
        "gate": {
            "gate_kind": "k_anonymity",
            "gate_k": 20,
            "gate_sampling_rate": 0.25,
            "gate_epsilon": 0.5,
            "texts_per_contributor": 2,
            "normalizer": "L1",
            "gate_window": None,
        },
        "selection": {"selection": "uncertainty", "uncertainty_measure": "entropy", "repeat_votes": False},
        "features": {"features": "twice_the_hashed_words", "feature_dimension": 64, "times": 3},
        "training": {"update_policy": "per_round", "estimator": "steep", "training_epsilon": 2.0, "steepness": 9.0},
        "labelling": {
            "class_words": ["sport and games", "music"],
            "class_descriptions": [],
            "class_groups": [],
            "class_colours": [],
            "class_keys": [],
        },
        "releases": {"labels_per_release": 20, "maximum_releases": None},
        "stream": {"windows_ahead": 1, "updates_per_release": 1, "drop_unselected": False},
    }
    assert featurizer_of(project).dimension == 3 * project.feature_dimension
    assert estimator_of(project, featurizer_of(project)).regularization == 9.0
    settings = reverse("annotation:configuration", args=[project.slug])
    page = client.get(settings)
    assert "sport and games" in page.content.decode()
    stands = {bound.name: bound.value() for bound in page.context["fields"]}
    extra = {"boxes": page.context["boxes"], "fields": page.context["sent_fields"]}
    sent = {name: "on" if value is True else value for name, value in stands.items() if value not in (None, False, "")}
    changed = {"label_randomizer": "", "class_words": "games\nsongs"}
    assert client.post(settings, sent | extra | changed).status_code == 302
    project.refresh_from_db()
    assert project.settings["class_words"] == ["games", "songs"]
    history = client.get(reverse("annotation:settings", args=[project.slug])).content.decode()
    assert "Words about the classes" in history
    assert "games, songs" in history


def test_a_release_is_trained_with_them_and_the_plan_knows_them():
    project = learning.open_trusted(
        make_user(), features="twice_the_hashed_words", estimator="steep", selection="random"
    )
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    assert release.estimator == "steep"
    assert plan_setups.setup_of(project, 200).can_be_simulated
