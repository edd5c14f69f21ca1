from annotation.choices.label_types.rating import Rate


def test_a_stream_is_not_rated():
    settings = {"oracle": "trusted", "arrival": "stream", "data_kind": "text", "classes": ["a", "b"]}
    assert "A stream asks for one class" in Rate.broken_by(settings)["question_kind"]
    assert not Rate.broken_by({**settings, "arrival": "pool"})


def test_answers_that_are_near_agree_more():
    assert Rate.coefficient.of([[0, 1], [4, 4], [2, 2]]) > Rate.coefficient.of([[0, 4], [4, 4], [2, 2]])
