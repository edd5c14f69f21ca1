import json

import numpy as np
import pytest
from django.core.management import call_command
from sklearn.datasets import load_digits

from annotation.choices.presets import STREAM_PRESETS
from learner.estimators.descriptions import ClassDescription
from learner.simulation.stream import simulate_stream
from learner.simulation.task import SimulationTask


def rows_of_two_digits(**changes):
    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, (0, 1))
    rows, labels = X[kept], y[kept].astype(np.int64)
    values = {"texts": (), "labels": labels[:300], "test_texts": (), "test_labels": labels[300:]}
    values |= {"rows": rows[:300], "test_rows": rows[300:], "classes": ("0", "1")}
    return SimulationTask(**(values | {"label_counts": (100, 800), "seeds": 2} | changes))


def texts(n, seed):
    rng = np.random.default_rng(seed)
    words = (("rain", "snow", "storm", "sunny"), ("bank", "loan", "payment", "credit"))
    labels = rng.integers(2, size=n)
    return tuple(f"{rng.choice(words[label])} {rng.choice(words[label])} please" for label in labels), labels


def text_task(**changes):
    (pool, labels), (test, test_labels) = texts(400, 1), texts(200, 2)
    values = {"texts": pool, "labels": labels, "test_texts": test, "test_labels": test_labels}
    return SimulationTask(**(values | {"classes": ("weather", "money"), "label_counts": (50,), "seeds": 2} | changes))


@pytest.mark.parametrize("preset", [preset.key for preset in STREAM_PRESETS])
def test_every_preset_is_played_within_its_account(preset):
    outcome = simulate_stream(preset)(rows_of_two_digits(label_counts=(20, 60), seeds=1))
    assert [point.labels for point in outcome.points] == [20, 60]
    limit = next(each for each in STREAM_PRESETS if each.key == preset).defaults
    assert outcome.accounts[0].epsilon == limit["pool_epsilon"]
    assert all(point.no_privacy.accuracy > 0.9 for point in outcome.points)


@pytest.mark.slow
def test_batches_learn_and_more_answers_are_better():
    points = simulate_stream("fraud-stream")(rows_of_two_digits()).points
    assert points[1].project.accuracy > points[1].constant.accuracy + 0.2
    assert points[1].project.accuracy >= points[0].project.accuracy
    # By chance alone nothing is paid for choosing, so the two are not one figure.
    assert points[0].random != points[0].project


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.one_in(3)
@pytest.mark.parametrize("preset", [preset.key for preset in STREAM_PRESETS])
@pytest.mark.parametrize("rare", [None, 0])
def test_no_preset_is_below_a_constant(preset, rare):
    """Ten digits, and a zero against all others, who are nine of ten; seeded.

    Of the rare zero a run's accuracy has a standard deviation of .05, so that two runs do not tell .92 from .90.
    """
    X, y = load_digits(return_X_y=True)
    labels = (y if rare is None else y == rare).astype(np.int64)
    classes = tuple("0123456789") if rare is None else ("another", "zero")
    values = {"labels": labels[:1200], "test_labels": labels[1200:], "rows": X[:1200], "test_rows": X[1200:]}
    values |= {"classes": classes, "label_counts": (500, 1200), "seeds": 2 if rare is None else 24}
    points = simulate_stream(preset)(rows_of_two_digits(**values)).points
    assert all(point.beats_constant for point in points)


def test_words_start_a_stream():
    words = {
        "weather": ClassDescription("weather", examples=("rain please", "snow please", "storm please", "sunny please")),
        "money": ClassDescription("money", examples=("bank please", "loan please", "payment please", "credit please")),
    }
    plain = simulate_stream("full-information-ogd")(text_task(settings=LITTLE)).points[0]
    described = simulate_stream("full-information-ogd")(text_task(settings=LITTLE, descriptions=words)).points[0]
    assert described.project.accuracy > 0.9
    assert described.project.accuracy > plain.project.accuracy + 0.1
    assert described.version_0.accuracy > 0.9


NAMED = {"weather": ("rain", "snow", "storm"), "money": ("bank", "loan", "credit"), "music": ("song", "band", "album")}


LITTLE = {"pool_epsilon": "0.1", "training_epsilon": "0.09"}


def named_task(classes, **changes):
    rng = np.random.default_rng(3)
    labels = rng.integers(3, size=600)
    said = list(NAMED.values())
    found = tuple(f"{rng.choice(said[label])} and {rng.choice(said[label])}" for label in labels)
    values = {"texts": found[:400], "labels": labels[:400], "test_texts": found[400:], "test_labels": labels[400:]}
    return text_task(classes=classes, **values, label_counts=(100,), **changes)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("preset", [preset.key for preset in STREAM_PRESETS])
def test_names_of_several_classes_start_running_sums(preset):
    """So few answers say nothing at this epsilon; the names do, and nobody guesses blindly."""
    point = simulate_stream(preset)(named_task(tuple(NAMED), settings=LITTLE)).points[0]
    assert point.version_0.accuracy > 0.7
    assert point.project.accuracy >= point.version_0.accuracy - 0.02
    blind = simulate_stream(preset)(named_task(("a1", "b2", "c3"), settings=LITTLE)).points[0]
    assert blind.project.accuracy < point.project.accuracy - 0.2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"wombats": "3"}, "unknown settings wombats"),
        ({"wombats": ""}, "unknown settings wombats"),
        ({"window_denominator": ""}, "public number"),
        ({"window_length": "many"}, "window_length must be of type int"),
        ({"drop_unselected": "perhaps"}, "drop_unselected must be of type bool"),
        ({"training_epsilon": "5"}, "pays once"),
        ({"estimator": "logistic"}, "reads all labels again"),
    ],
)
def test_settings_that_are_not_a_stream_are_refused_by_name(settings, said):
    with pytest.raises(ValueError, match=said):
        simulate_stream("fraud-stream")(rows_of_two_digits(settings=settings))


def test_the_command_plays_a_stream(tmp_path, capsys):
    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, (3, 8))
    np.savez(tmp_path / "two.npz", X=X[kept], y=y[kept])
    call_command(
        "simulate",
        data=tmp_path / "two.npz",
        preset="fraud-stream",
        labels="50",
        seeds=1,
        json=True,
        set=["moment_share=0.1"],
    )
    found = json.loads(capsys.readouterr().out)
    assert set(found["points"][0]) == {"labels", "project", "random", "version_0", "no_privacy", "constant"}
    assert found["accounts"][0]["epsilon"] == 2.0
