"""What a plan tries: one thing changed at a time, and what choosing leaves of the limit shared by as many models."""

from dataclasses import replace
from typing import Any

import pytest

from learner.planning.splits import series_epsilon
from learner.planning.tried_settings import MOST_DIVIDED_CLASSES, left_out, settings_to_try, untried
from learner.strategies.top_c import TopC
from tests.pure.learner.planning.test_curves import OPEN, RATES_OF_SCREEN, SECRET

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
    assert {"text_columns": 64} in found
    assert {"text_columns": 256} in found
    models = [wanted["estimator"] for wanted in found if "estimator" in wanted]
    # Of two classes what is planned is this one.
    assert not {"planned", "huber_svm_gaussian"} & set(models)
    assert {"softmax_steps", "sums", "logistic"} <= set(models)


def test_of_many_classes_no_model_divides_epsilon_and_the_page_says_so() -> None:
    many = SETTINGS | {"classes": [str(number) for number in range(MOST_DIVIDED_CLASSES + 1)]}
    models = {wanted.get("estimator") for wanted in settings_to_try(many, SECRET, 2.0)}
    assert "sums" in models
    assert not {"logistic", "huber_svm", "softmax_steps"} & models
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


def test_of_a_screen_the_rates_are_divided() -> None:
    setup = replace(OPEN, selection="exposure_capped_screen", parameters=RATES_OF_SCREEN)
    lows = [each["screen_low"] for each in settings_to_try(SETTINGS, setup, 4.0) if "screen_low" in each]
    assert len(lows) > 1
    assert all(0 < low < 0.4 for low in lows)


def test_of_hidden_windows_batches_go_with_the_rate() -> None:
    settings = SETTINGS | {"arrival": "stream", "selection": "bernoulli_screen", "estimator": "running_sums"}
    settings |= {"screen_high": 0.1, "screen_low": 0.05, "window_denominator": 50}
    setup = replace(OPEN, selection="bernoulli_screen", parameters=RATES_OF_SCREEN, stream=True, hidden=True)
    found = [each for each in settings_to_try(settings, setup, 2.0) if "screen_high" in each]
    assert {"screen_high": 0.2, "screen_low": 0.1, "window_denominator": 100} in found
    assert "noisy steps" in left_out(settings)


@pytest.mark.parametrize("columns", [2, 256, 300])
def test_columns_stay_within_what_there_are(columns: int) -> None:
    found = [
        each["text_columns"]
        for each in settings_to_try(SETTINGS | {"text_columns": columns}, SECRET, 2.0)
        if "text_columns" in each
    ]
    assert all(2 <= wanted <= 256 and wanted != columns for wanted in found)
    assert (columns == 300) == (not found)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"estimator": "mi_ogd"}, "declared noise"),
        ({"oracle": "crowd", "label_randomizer": ""}, "all answers are paid for at once"),
    ],
)
def test_where_nothing_is_tried_the_reason_is_said(changes: dict[str, Any], why: str) -> None:
    assert why in untried(SETTINGS | changes)
    assert list(settings_to_try(SETTINGS | changes, OPEN, 2.0)) == []
    assert untried(SETTINGS) == ""
