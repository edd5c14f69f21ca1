"""A featuriser declared here, with a kind of its own: chosen, planned, trained and released with no other edit."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from annotation.projects.forms.wizard import WizardStep
from annotation.tokens import services as tokens
from annotation.tokens.services import Scope
from learner.artifacts.services.storage import folder_of
from learner.configuration.pool import featurizer_of
from learner.features.base import Featurizer, featurizer_from_json
from learner.features.choice import FeaturesChoice
from learner.planning import plan_setups
from privacy.choices import Sound
from privacy.parameters import parameter
from tests import learning
from tests.declaring import declaring, fields_shown
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Letters(Featurizer):
    """How often a text has each of the first letters of the alphabet."""

    kind = "letters_of_a_test"
    reads = "text"
    is_quick = True
    norm_bound = 1.0

    def __init__(self, most: int) -> None:
        self.most = most

    @property
    def dimension(self) -> int:
        return self.most

    def parameters(self):
        return {"most": self.most}

    @classmethod
    def from_parameters(cls, parameters):
        return cls(parameters["most"])

    def raw_rows(self, batch):
        texts = [str(text).lower() for text in batch]
        counts = np.array([[text.count(letter) for letter in LETTERS[: self.most]] for text in texts], dtype=float)
        return (
            counts.reshape(-1, self.most)
            / np.maximum(1.0, np.linalg.norm(counts.reshape(-1, self.most), axis=1))[:, None]
        )


@dataclass(frozen=True)
class CountsLetters(FeaturesChoice):
    name: ClassVar[str] = "letters"
    label: ClassVar[str] = "how often each letter stands in a text"
    sound: ClassVar[Sound] = Sound(data_kinds=("text",))

    alphabet: int = parameter(
        26, at_least=2, at_most=26, label="Letters that count", help="From a on.", rule="From 2 to 26, not {got}."
    )

    def featurizer(self, shape) -> Letters:
        return Letters(self.alphabet)


@pytest.fixture
def declared() -> Iterator[None]:
    with declaring(CountsLetters):
        yield


@pytest.fixture
def pool(declared, manager):
    return learning.open_trusted(manager, features="letters", alphabet=20, selection="random")


def test_the_wizard_offers_it_with_its_settings_and_rule(declared, client):
    url = reverse("annotation:wizard", args=["pool-experts", WizardStep.MODEL])
    page = client.get(url)
    assert "how often each letter stands in a text" in page.content.decode()
    sent = {name: value for name, value in fields_shown(page).items() if value not in (None, False)}
    client.post(url, sent | {"features": "letters"})
    page = client.get(url)
    assert fields_shown(page)["alphabet"] in ("26", 26)
    sent = {name: value for name, value in fields_shown(page).items() if value not in (None, False)}
    refused = client.post(url, sent | {"alphabet": "1"})
    assert (refused.status_code, "From 2 to 26, not 1" in refused.content.decode()) == (422, True)


def test_the_settings_page_changes_it_and_the_history_names_it(pool, client):
    url = reverse("annotation:configuration", args=[pool.slug])
    page = client.get(url)
    assert fields_shown(page)["alphabet"] in ("20", 20)
    sent = {name: value for name, value in fields_shown(page).items() if value not in (None, "false")}
    extra = {"boxes": page.context["boxes"], "fields": page.context["sent_fields"]}
    assert client.post(url, sent | extra | {"alphabet": "22"}).status_code == 302
    pool.refresh_from_db()
    assert pool.configuration.document["features"]["alphabet"] == 22
    assert "Letters that count" in client.get(reverse("annotation:settings", args=[pool.slug])).content.decode()


def test_rest_lists_it_and_changes_it(pool, manager):
    _, secret = tokens.create_token(user=manager, name="t", scopes=list(Scope), lifetime=timedelta(days=1))
    sent = {"headers": {"Authorization": f"Bearer {secret}"}, "content_type": "application/json"}
    listed = {one["name"]: one for one in Client().get("/api/v1/choices?kind=features", **sent).json()}
    assert listed["letters"]["parameters"]["properties"]["alphabet"]["maximum"] == 26
    url = f"/api/v1/projects/{pool.slug}/configuration"
    refused = Client().patch(url, json.dumps({"settings": {"alphabet": 30}}), **sent)
    assert (refused.status_code, "From 2 to 26, not 30" in refused.json()["detail"]) == (422, True)
    after = Client().patch(url, json.dumps({"settings": {"alphabet": 10}}), **sent).json()
    assert after["document"]["features"]["alphabet"] == 10


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


def test_a_kind_belongs_to_one_class():
    with pytest.raises(TypeError, match=r"'hashing_text' is that of learner\.features\.text\.HashingTextFeaturizer"):
        type("Posing", (Letters,), {"kind": "hashing_text"})
    with pytest.raises(ValueError, match=r"featurizer kind must be one of .*, got 'os.system'"):
        featurizer_from_json('{"kind": "os.system", "parameters": {}}')


def test_it_is_what_a_project_reads_records_by(pool):
    assert featurizer_of(pool) == Letters(20)
    assert np.linalg.norm(featurizer_of(pool).transform(["what a day", "zzz", ""]), axis=1).max() <= 1.0
