import pytest

from annotation.choices.presets import PRESETS, broken_rules


def refused(classes: list[str]) -> str | None:
    preset = PRESETS["pool-experts"]
    basic = {"oracle": preset.oracle, "data_kind": "text", "columns": [], "classes": classes}
    return broken_rules({**preset.defaults, **basic}).get("classes")


@pytest.mark.parametrize("number", [2, 51, 1000])
def test_two_to_a_thousand_classes_are_taken(number: int) -> None:
    assert refused([f"class {place}" for place in range(number)]) is None


@pytest.mark.parametrize(
    ("classes", "rule"),
    [
        (["one"], "2 to 1,000"),
        ([f"class {place}" for place in range(1001)], "2 to 1,000"),
        (["a", "a"], "2 to 1,000"),
        (["a", " "], "at most 200 letters"),
        (["a", "b" * 201], "at most 200 letters"),
    ],
)
def test_others_are_refused_with_the_rule(classes: list[str], rule: str) -> None:
    assert rule in (refused(classes) or "")
