import pytest

from annotation.choices.classes import SEVERAL, merge_hindrance
from annotation.choices.label_types.learning import is_learned, not_learned
from annotation.choices.label_types.spans import NO_CROWD, NO_STREAM, MarkSpans

SOUND = {"oracle": "trusted", "arrival": "pool", "data_kind": "text", "classes": ["name", "place"]}


@pytest.mark.parametrize(
    ("changed", "setting", "reason"),
    [
        ({"oracle": "crowd"}, "question_kind", NO_CROWD),
        ({"arrival": "stream"}, "question_kind", NO_STREAM),
        ({"data_kind": "image"}, "question_kind", "Spans are parts of a text."),
        ({"selection": "margin"}, "selection", ""),
        ({"label_randomizer": "randomized_consensus"}, "label_randomizer", ""),
        ({"selection": "secret_sample", "suggestions": "released_model"}, "suggestions", "secret sample"),
        ({"aggregation": "mace"}, "aggregation", ""),
    ],
)
def test_what_has_no_proof_for_spans_is_refused(changed, setting, reason):
    assert MarkSpans.broken_by(SOUND | {"selection": "random", "suggestions": "released_model"}) == {}
    assert reason in MarkSpans.broken_by(SOUND | changed)[setting]


def test_equal_sets_agree():
    assert MarkSpans().agreed([4, 4, 7]).choice == 4
    assert MarkSpans().agreed([4, 7]) is None


def test_types_are_not_merged():
    assert merge_hindrance(SOUND | {"question_kind": "spans"}) == SEVERAL


def test_only_a_model_of_spans_learns_them():
    assert not_learned({"question_kind": "spans", "estimator": "logistic"})
    assert is_learned("several")
