import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from annotation.choices.catalogue import CATALOGUE, parameter_names
from annotation.choices.selections import asks_about_all, selection_choice
from annotation.choices.stream_rules import selection_rates
from annotation.models import Project
from learner.strategies.bernoulli_screen import TwoRates
from learner.strategies.top_c import NoisyRanking
from privacy.choices import Kind, parameter

ROOT = Path(__file__).resolve().parents[4]
# Strategies themselves, and presets, which say what a project has where nobody does.
OWN = re.compile(r"learner/strategies/\w+\.py|annotation/choices/(stream_)?presets\.py")


@pytest.mark.parametrize("name", sorted({*parameter_names(Kind.STRATEGY)} - {*Project.absent}))
def test_what_no_page_reads_is_named_by_its_strategy_alone(name):
    product = [
        path
        for room in ("annotation", "dpal_site", "learner", "privacy")
        for kind in ("*.py", "*.sql", "*.html")
        for path in (ROOT / room).rglob(kind)
    ]
    found = {str(path.relative_to(ROOT)) for path in product if re.search(rf"\b{name}\b", path.read_text())}
    assert {path for path in found if not OWN.fullmatch(path)} == set()


def words_of_names() -> dict[str, set[tuple[str, str]]]:
    words: dict[str, set[tuple[str, str]]] = {}
    for choice in CATALOGUE.all():
        for each in choice.parameters():
            words.setdefault(each.name, set()).add((each.label, each.help))
    return words


def test_a_name_has_one_label_and_one_help():
    # The one training of a stream that hides who it learns from is the stream.
    assert {name for name, words in words_of_names().items() if len(words) > 1} <= {"training_delta"}


def test_a_name_with_two_labels_is_found(monkeypatch):
    @dataclass(frozen=True)
    class Other(NoisyRanking):
        name: ClassVar[str] = "other"
        selection_epsilon: float = parameter(1.0, above=0, label="Another thing")

    monkeypatch.setattr(CATALOGUE, "all", lambda: [NoisyRanking, Other])
    assert len(words_of_names()["selection_epsilon"]) == 2


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
        with pytest.raises(ValueError, match="nothing says with which chance"):
            selection_rates({"selection": silent})


def test_chance_and_secret_samples_ask_at_random_themselves():
    by_chance = {choice.name for choice in CATALOGUE.of_kind(Kind.STRATEGY) if getattr(choice, "by_chance", None)}
    assert by_chance == {"random", "secret_sample"}
