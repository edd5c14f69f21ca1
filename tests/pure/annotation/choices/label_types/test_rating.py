from annotation.choices.label_types.rating import MOST_STEPS, Rate


def test_a_scale_has_as_many_steps_as_keys():
    assert not Rate().rules({"classes": [str(step) for step in range(MOST_STEPS)]})
    assert "at most 11" in Rate().rules({"classes": [str(step) for step in range(MOST_STEPS + 1)]})["classes"]


def test_a_stream_is_not_rated():
    settings = {"oracle": "trusted", "arrival": "stream", "data_kind": "text", "classes": ["a", "b"]}
    assert "pool" in Rate.broken_by(settings)["question_kind"]
    assert not Rate.broken_by({**settings, "arrival": "pool"})


def test_answers_that_are_near_agree_more():
    assert Rate.coefficient.of([[0, 1], [4, 4], [2, 2]]) > Rate.coefficient.of([[0, 4], [4, 4], [2, 2]])
