import pytest

from annotation.choices.label_types.choose import ChooseOne
from annotation.review.agreement import Answer, compare_answers

# Krippendorff, "Computing Krippendorff's alpha-reliability" (2011): four observers, twelve units, gaps.
KRIPPENDORFF = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def answers_of(rows):
    return [
        Answer(task=task, person=person, choice=int(value))
        for person, row in enumerate(rows)
        for task, value in enumerate(row)
        if value != "."
    ]


def test_alpha_of_the_published_example():
    assert compare_answers(answers_of(KRIPPENDORFF), method="majority", kind=ChooseOne()).alpha == pytest.approx(
        0.743, abs=5e-4
    )


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("method", ["dawid_skene", "mace"])
def test_models_see_through_three_who_always_say_the_same(method):
    """Two careful people against three who press one key: a majority follows the key, a model does not."""
    truth = [task % 3 for task in range(60)]
    careful = [Answer(task, person, right) for person in (1, 2) for task, right in enumerate(truth)]
    lazy = [Answer(task, person, 0) for person in (3, 4, 5) for task in range(60)]
    modelled = compare_answers(careful + lazy, method=method, kind=ChooseOne())
    counted = compare_answers(careful + lazy, method="majority", kind=ChooseOne())
    right = sum(modelled.opinions[task][0] == answer for task, answer in enumerate(truth))
    assert sum(counted.opinions[task][0] == answer for task, answer in enumerate(truth)) == 20
    if method == "dawid_skene":
        assert right >= 55
        assert min(modelled.skills[1], modelled.skills[2]) > modelled.skills[3]
    assert all(0 <= probability <= 1 for _, probability in modelled.opinions.values())
    # The same answers give the same opinion.
    assert compare_answers(careful + lazy, method=method, kind=ChooseOne()) == modelled


@pytest.mark.slow
def test_one_who_guesses_counts_less():
    truth = [task % 2 for task in range(80)]
    careful = [Answer(task, person, right) for person in (1, 2) for task, right in enumerate(truth)]
    guesser = [Answer(task, 3, (task // 2) % 2) for task in range(80)]
    for method in ("majority", "dawid_skene", "mace"):
        skills = compare_answers(careful + guesser, method=method, kind=ChooseOne()).skills
        assert skills[1] == skills[2] == 1.0
        assert skills[3] == 0.5
