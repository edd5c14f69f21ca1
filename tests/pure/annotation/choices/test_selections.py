import pytest

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.selections import asks_about_all, selection_choice, selection_rates
from learner.strategies.bernoulli_screen import TwoRates
from privacy.choices import Kind


def test_what_chooses_is_found_by_its_name():
    found = selection_choice({"selection": "top_c"})
    assert found is not None
    assert found.name == "top_c"
    assert selection_choice({"selection": "no such"}) is None
    assert selection_choice({}) is None


def test_of_a_stream_all_is_asked_about_where_no_coin_decides():
    assert {choice.name for choice in CATALOGUE.of_kind(Kind.STRATEGY) if "stream" in choice.sound.arrivals} == {
        "all",
        "bernoulli_screen",
    }
    assert asks_about_all("all")
    assert not asks_about_all("bernoulli_screen")
    assert not asks_about_all("no such")


def test_a_form_counts_with_the_rates_that_a_stream_is_charged():
    settings = {"selection": "bernoulli_screen", "screen_high": 0.3, "screen_low": 0.07}
    assert selection_rates(settings) == TwoRates.of(settings).strategy().rates


def test_what_says_no_rates_is_not_taken_to_ask_about_everything():
    """Where all are asked about, being asked costs nothing: no choice is priced so because it says nothing."""
    asks_all = {each.name for each in CATALOGUE.of_kind(Kind.STRATEGY) if asks_about_all(each.name)}
    assert asks_all == {"all"}
    assert selection_rates({"selection": "all"}) == (1.0, 1.0)
    for silent in ("random", "top_c", "uncertainty", "no such", None):
        with pytest.raises(ValueError, match="the chance of each record"):
            selection_rates({"selection": silent})


def test_chance_and_secret_samples_ask_at_random_themselves():
    by_chance = {choice.name for choice in CATALOGUE.of_kind(Kind.STRATEGY) if getattr(choice, "by_chance", None)}
    assert by_chance == {"random", "secret_sample"}
