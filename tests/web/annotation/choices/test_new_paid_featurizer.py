"""A featuriser declared here that finds something in the pool, at a price: charged first, planned, and released."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from django.db import IntegrityError, transaction

from annotation.errors import InvalidUpload
from learner.features.base import Featurizer
from learner.features.choice import FeaturesChoice, Finding
from learner.models import FeatureProjection
from learner.pools import records as pool_selectors
from privacy.accounting.event import event_from_json
from privacy.accounting.sums import second_moments_event
from privacy.choices import Sound, parameter
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.second_moments import release_second_moments
from tests import learning
from tests.factories import make_user, write_settings

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
REFUSED = "role: the letters are counted in the pool, which nothing may come before"


class FirstLetters(Featurizer):
    kind = "first_letters_of_a_test"
    reads = "text"
    norm_bound = 1.0

    def __init__(self, most: int, letters: str | None = None) -> None:
        self.most, self.letters = most, letters

    @property
    def dimension(self) -> int:
        return self.most

    def parameters(self):
        return {"most": self.most, "letters": self.letters}

    @classmethod
    def from_parameters(cls, parameters):
        return cls(**parameters)

    def raw_rows(self, batch):
        assert self.letters is not None, "nobody has paid for the letters"
        return np.array([[text[:1] == letter for letter in self.letters] for text in batch], dtype=float)


@dataclass(frozen=True)
class CommonFirstLetters(FeaturesChoice):
    name: ClassVar[str] = "first_letters"
    label: ClassVar[str] = "the letters that texts of the pool begin with most often"
    sound: ClassVar[Sound] = Sound(oracles=("trusted",), data_kinds=("text",))
    no_start: ClassVar[str] = REFUSED

    features_epsilon: float = parameter(None, above=0, label="Epsilon of the letters", rule="Must be above 0: {got}.")
    letters: int = parameter(4, at_least=2, at_most=26, label="Letters")

    def featurizer(self, shape) -> FirstLetters:
        return FirstLetters(self.letters)

    def found(self, shape, released) -> FirstLetters:
        return FirstLetters(self.letters, "".join(released))

    def finding(self, shape) -> Finding:
        event = second_moments_event(self.features_epsilon, len(LETTERS))

        def release(batches: Iterable[list[str]], rng: RandomSource) -> list[Any]:
            first = ([[text[:1] == each for each in LETTERS] for text in batch] for batch in batches)
            rows = (np.array(batch, dtype=float) for batch in first)
            counts = np.diag(release_second_moments(rows, event, rng=rng))
            return [LETTERS[place] for place in np.argsort(-counts, kind="stable")[: self.letters]]

        return Finding(event, purpose="count first letters", no_pool="No text to count letters of.", release=release)


DECLARED = CommonFirstLetters


@pytest.fixture
def project(declared, manager):
    priced = {"features": "first_letters", "features_epsilon": 0.5, "training_epsilon": 0.5, "pool_epsilon": 2.0}
    return learning.open_trusted(manager, **priced, selection="random", round_size=10, labels_per_release=10)


def test_the_pool_pays_for_it_first_and_every_release_descends_from_it(project):
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    # Random choice came before, which reads nothing and costs nothing.
    paid = [entry for entry in learning.entries(project, "reserve") if entry.epsilon_nano]
    assert [entry.subject for entry in paid] == ["features", "release:1"]
    assert event_from_json(paid[0].event) == second_moments_event(0.5, 26)
    assert (paid[0].purpose, 0.49e9 < paid[0].epsilon_nano <= 0.5e9) == ("count first letters", True)
    found = FeatureProjection.objects.get(project=project)
    assert found.entry in release.lineage.all()
    assert release.features["parameters"] == {"most": 4, "letters": "".join(found.components)}
    assert len(set(found.components)) == 4


def test_nothing_starts_before_it(project):
    rows = [[text, learning.CLASSES[learning.truth_of(text)]] for text in learning.sentences(20)]
    with pytest.raises(InvalidUpload, match=REFUSED):
        learning.upload(project, rows, ["text", "label"], role="charged_start", start_epsilon=5.0)
    learning.upload(project, rows, ["text", "label"], role="public_start")
    assert list(pool_selectors.start_datasets(project)) == []
    write_settings(project, features="standard", features_epsilon=None)
    project.refresh_from_db()
    assert len(pool_selectors.start_datasets(project)) == 1


def test_the_database_asks_for_its_price_and_for_none_of_what_costs_nothing(project):
    for change in ({"features_epsilon": None}, {"features": "standard"}):
        with pytest.raises(IntegrityError, match="annotation_project_features_fit_data"), transaction.atomic():
            write_settings(project, **change)
