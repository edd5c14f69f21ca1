import pytest

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.label_types.learning import not_learned
from privacy.choices import Kind

SOUND = {"oracle": "trusted", "arrival": "pool", "data_kind": "text", "classes": list("abcde"), "labels_per_record": 2}
SOUND |= {"estimator": "label_sets", "selection": "secret_sample"}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, ""),
        ({"estimator": "sums"}, "need the model label_sets"),
        ({"question_kind": "choose"}, "learns nothing from such answers"),
        ({"question_kind": "rating"}, "learns nothing from such answers"),
        ({"question_kind": "confirm", "estimator": "sums"}, "Such answers need the model running_sums"),
        ({"question_kind": "rating", "estimator": "sums"}, ""),
    ],
)
def test_a_model_learns_what_it_is_made_for(changed, words):
    settings = SOUND | {"question_kind": "several"} | changed
    rule = not_learned(settings)
    assert words in rule
    assert bool(rule) == bool(words)
    if rule:
        assert CATALOGUE.find(Kind.ESTIMATOR, settings["estimator"]).broken_by(settings)["estimator"] == rule
