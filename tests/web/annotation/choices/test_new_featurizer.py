"""A featuriser declared here, with a kind of its own: chosen, planned, trained and released with no other edit."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import ClassVar

import numpy as np
import pytest
from django.urls import reverse

from annotation.models import Membership, Role
from annotation.questions.services import labels, queue
from dpal.features.table import columns_of, read_numbers
from learner.features.base import Featurizer, featurizer_from_json
from learner.features.choice import FeaturesChoice
from learner.linear_model import LinearModel
from learner.models import ModelRelease
from learner.pools.configuration import featurizer_of
from learner.releases.artifacts.files import samples_document
from learner.releases.storage import folder_of
from learner.simulation import plan_setups
from privacy.choices import Sound
from tests import learning
from tests.declaring import declaring
from tests.examples.featurizer import CountsLetters, Letters
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


class Ages(Featurizer):
    """Whether somebody is of an age, of rows of a table."""

    kind = "ages_of_a_test"
    reads = "table"
    norm_bound = 1.0
    dimension = 2

    def parameters(self):
        return {}

    @classmethod
    def from_parameters(cls, parameters):
        return cls()

    def example_records(self):
        return [{"age": 10}, {"age": None}, {}]

    def raw_rows(self, batch):
        values, number = columns_of(batch, ["age"])
        ages = np.nan_to_num(read_numbers(values["age"]))
        return np.stack([np.clip(ages, 0, 100) / 200, np.full(number, 0.5)], axis=1)


@dataclass(frozen=True)
class ReadsAges(FeaturesChoice):
    name: ClassVar[str] = "ages"
    label: ClassVar[str] = "how old somebody is"
    sound: ClassVar[Sound] = Sound(data_kinds=("table",))

    def featurizer(self, shape) -> Ages:
        return Ages()


class Corners(Featurizer):
    """The brightness of an image's first and last pixel."""

    kind = "corners_of_a_test"
    reads = "image"
    norm_bound = 1.0
    dimension = 2

    def parameters(self):
        return {"side": 3}

    @classmethod
    def from_parameters(cls, parameters):
        return cls()

    def example_records(self):
        return [[[0, 0, 0], [0, 0, 0], [0, 0, 255]], [[255, 0, 0], [0, 0, 0], [0, 0, 255]]]

    def raw_rows(self, batch):
        images = np.asarray(batch, dtype=float) / 255
        return np.stack([images[:, 0, 0], images[:, -1, -1]], axis=1) / 2


@pytest.fixture
def declared() -> Iterator[None]:
    with declaring(CountsLetters, ReadsAges):
        yield


@pytest.fixture
def pool(declared, manager):
    return learning.open_trusted(manager, features="letters", alphabet=20, selection="random")


def test_a_release_is_charged_made_and_read_back_with_it(pool, client):
    learning.fill_trusted(pool)
    release = learning.run_to_release(pool, make_user(), version=1)
    folder = folder_of(release)
    described = json.loads((folder / "features.json").read_text())
    assert (described["kind"], described["parameters"]) == ("letters_of_a_test", {"most": 20})
    assert featurizer_from_json(json.dumps({name: described[name] for name in ("kind", "parameters")})) == Letters(20)
    assert 'pipeline_tag: "text-classification"' in (folder / "card.md").read_text().replace("'", '"')
    assert json.loads((folder / "weights.json").read_text())
    assert release.entry.epsilon_nano > 0
    assert client.get(reverse("learner:release", args=[pool.slug, 1])).status_code == 200
    assert plan_setups.setup_of(pool, 200).can_be_simulated
    assert client.get(reverse("learner:plan", args=[pool.slug])).status_code == 200


def test_a_release_of_a_table_is_charged_made_and_read_back_with_one(declared, manager):
    training = {"labels_per_release": 12, "training_epsilon": 2.0, "pool_epsilon": 20.0, "maximum_releases": 3}
    exact = {"training_delta": 0.0, "pool_delta": 0.0, "selection": "random", "round_size": 12}
    settings = {"columns": [{"name": "age", "low": 0, "high": 100}], "features": "ages", "estimator": "logistic"}
    project = learning._open("pool-experts", manager, training | exact | settings, data_kind="table")
    learning.upload(project, [[str(number)] for number in range(80)], ["age"])
    tested = [[str(number), learning.CLASSES[number // 30]] for number in range(60)]
    learning.upload(project, tested, ["age", "label"], role="public_test")
    annotator = make_user()
    Membership.objects.create(project=project, user=annotator, role=Role.ANNOTATOR)
    learning.work_off(project, version=1)
    answers = cycle((0, 1))
    while (assignment := queue.claim_next(project=project, user=annotator)) is not None:
        labels.submit_label(assignment=assignment, choice=next(answers))
    learning.work_off(project, version=1)
    release = ModelRelease.objects.get(project=project, version=1)
    assert release.entry.epsilon_nano == 2 * 10**9
    folder = folder_of(release)
    described = json.loads((folder / "features.json").read_text())
    assert featurizer_from_json(json.dumps({name: described[name] for name in ("kind", "parameters")})) == Ages()
    assert json.loads((folder / "samples.json").read_text())["records"] == Ages().example_records()
    assert "tabular-classification" in (folder / "card.md").read_text()


def test_a_release_of_images_says_what_it_makes_of_its_own_examples():
    model = LinearModel(np.array([[4.0, -4.0]]), np.zeros(1), ("dark", "bright"))
    told = samples_document(model, Corners())
    assert told["records"] == Corners().example_records()
    assert told["labels"] == model.predict(Corners().transform(np.array(told["records"], dtype=np.uint8)))


def test_what_a_release_needs_is_asked_where_the_class_is_defined():
    with pytest.raises(TypeError, match=r"a featurizer reads one of .*, got 'sound'"):
        type("Sounds", (Letters,), {"kind": "sounds_of_a_test", "reads": "sound"})
    with pytest.raises(TypeError, match="reads a table names records by example_records, 'bare_of_a_test'"):
        type("Bare", (Letters,), {"kind": "bare_of_a_test", "reads": "table"})
    # What was refused can be loaded by nobody.
    for kind in ("sounds_of_a_test", "bare_of_a_test"):
        with pytest.raises(ValueError, match=f"got '{kind}'"):
            featurizer_from_json(json.dumps({"kind": kind, "parameters": {}}))


@pytest.mark.parametrize("kind", [["letters_of_a_test"], {"letters_of_a_test": 1}, 3, None])
def test_a_kind_that_is_no_text_is_refused(kind):
    with pytest.raises(ValueError, match="featurizer kind must be one of"):
        featurizer_from_json(json.dumps({"kind": kind, "parameters": {"most": 20}}))


def test_a_kind_belongs_to_one_class():
    with pytest.raises(TypeError, match=r"'hashing_text' is that of learner\.features\.text\.HashingTextFeaturizer"):
        type("Posing", (Letters,), {"kind": "hashing_text"})
    with pytest.raises(ValueError, match=r"featurizer kind must be one of .*, got 'os.system'"):
        featurizer_from_json('{"kind": "os.system", "parameters": {}}')


def test_it_is_what_a_project_reads_records_by(pool):
    assert featurizer_of(pool) == Letters(20)
    assert np.linalg.norm(featurizer_of(pool).transform(["what a day", "zzz", ""]), axis=1).max() <= 1.0
