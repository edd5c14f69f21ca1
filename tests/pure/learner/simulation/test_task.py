import numpy as np
import pytest

from learner.estimators.descriptions import ClassDescription
from learner.simulation.task import SimulationTask, held_out


def task(**changes):
    values = {
        "texts": ("pay my bill", "play a song"),
        "labels": np.array([0, 1]),
        "test_texts": ("stop the music",),
        "test_labels": np.array([1]),
        "classes": ("money", "music"),
    }
    return SimulationTask(**{**values, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": np.array([0])},
        {"labels": np.array([0, 2])},
        {"test_labels": np.array([-1])},
        {"classes": ("money", "money")},
        {"contributors": ("anna",)},
        {"descriptions": {"weather": ClassDescription("weather")}},
        {"label_counts": (20, 10)},
        {"seeds": 0},
    ],
)
def test_a_task_refuses_what_does_not_fit(changes):
    with pytest.raises(ValueError, match=r"must|differ|do not exist"):
        task(**changes)


def test_a_fifth_is_held_out_and_nothing_lost():
    pool, test = held_out(101)
    assert (len(pool), len(test)) == (81, 20)
    assert sorted([*pool, *test]) == list(range(101))
    np.testing.assert_array_equal(held_out(101)[1], test)


def test_slots_multiply_examples():
    described = ClassDescription(
        "music", examples=("play {song} by {who}", "next"), slots={"song": ["a", "b"], "who": "xy"}
    )
    assert described.example_texts == ("play a by x", "play a by y", "play b by x", "play b by y", "next")
