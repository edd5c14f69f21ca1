import inspect

import pytest

from addons.language_models.services import class_of, messages_for

CLASSES = ["Play music", "Set alarm", "music"]


def test_the_question_the_classes_their_words_and_the_text_are_all_there_is():
    assert set(inspect.signature(messages_for).parameters) == {"question", "classes", "descriptions", "text"}
    system, user = messages_for(
        question="What is wanted?",
        classes=CLASSES,
        descriptions=["set alarm: wake me {up|early}", 'music: "la"'],
        text="wake me",
    )
    assert user == {"role": "user", "content": "<text>wake me</text>"}
    assert "Question: What is wanted?" in system["content"]
    assert "- Play music\n- Set alarm: wake me up\n- music: “la”\n" in system["content"]
    assert "wake me</text>" not in system["content"]


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("Set alarm", 1),
        (' "set alarm." \n', 1),
        ("Class: Play music", 0),
        ("**music**", 2),
        ("Play music or set alarm", None),
        ("I think it is Set alarm", None),
        ("weather", None),
        ("", None),
        ("1", None),
    ],
)
def test_only_a_class_by_itself_is_an_answer(reply, found):
    assert class_of(reply, CLASSES) == found


def test_two_classes_that_look_alike_are_no_answer():
    assert class_of("a", ["A", "a"]) is None
