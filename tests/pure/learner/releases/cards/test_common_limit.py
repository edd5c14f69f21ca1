from learner.releases.cards.rendering import account_limit_words


def test_a_population_is_named_with_the_declared_number():
    said = account_limit_words({"unit": "record", "population": "Patients\n`x`", "records_per_person": 3})
    assert "the population `Patients 'x'`" in said
    assert "at most 3 records" in said


def test_a_project_without_one_says_so():
    assert "outside any common limit" in account_limit_words({"unit": "contributor", "population": ""})
