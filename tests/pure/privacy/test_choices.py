from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from privacy.accounting.events import Event, PostProcessingEvent, TopCEvent
from privacy.choices import BrokenRules, Catalogue, Choice, Kind, Sound, parameter


@dataclass(frozen=True)
class Clusters(Choice):
    kind: ClassVar[Kind] = Kind.STRATEGY
    name: ClassVar[str] = "clusters"
    label: ClassVar[str] = "one of each cluster"
    sound: ClassVar[Sound] = Sound(oracles={"trusted"}, arrivals={"pool"}, why_not={"crowd": "Clusters read records."})

    clusters: int = parameter(8, label="Clusters", help="How many.", unit="clusters", at_least=2, at_most=100)
    sharpness: float = parameter(0.5, label="Sharpness", above=0, below=1, rule="Sharp is 0 to 1, not {got}.")
    measure: str = parameter("margin", label="Measure", options={"margin": "margin", "entropy": "entropy"})
    again: bool = parameter(False, label="Again")
    cap: int | None = parameter(None, label="Cap", at_least=1)
    seeds: tuple[str, ...] = parameter((), label="Seeds")
    not_declared: int = field(default=3)

    def event(self, *, pool_size: int, picks: int) -> Event:
        return TopCEvent(pool_size=pool_size, picks=picks, scale=self.sharpness, series="single")

    def rules(self, settings):
        return {"cap": "At most as many as there are clusters."} if (self.cap or 0) > self.clusters else {}


@dataclass(frozen=True)
class Chance(Choice):
    """A strategy without parameters."""

    kind: ClassVar[Kind] = Kind.STRATEGY
    name: ClassVar[str] = "chance"
    label: ClassVar[str] = "chance"

    def event(self) -> Event:
        return PostProcessingEvent(operation="chance")


POOL = {"oracle": "trusted", "arrival": "pool", "data_kind": "text"}


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"clusters": 1}, "Must be at least 2, got 1."),
        ({"clusters": 101}, "Must be at most 100, got 101."),
        ({"clusters": 2.5}, "Must be of type integer, got 2.5."),
        ({"clusters": True}, "Must be of type integer, got True."),
        ({"sharpness": 0}, "Sharp is 0 to 1, not 0"),
        ({"sharpness": 1.0}, "Sharp is 0 to 1, not 1"),
        ({"sharpness": float("nan")}, "Sharp is 0 to 1, not nan"),
        ({"sharpness": "0.5"}, "Must be of type number"),
        ({"measure": "doubt"}, "Must be one of margin, entropy, got doubt."),
        ({"again": 1}, "Must be of type boolean, got 1."),
        ({"cap": 0}, "Must be at least 1, got 0."),
        ({"seeds": [1]}, "Must be of type array"),
    ],
)
def test_values_outside_their_range_are_refused(values, rule):
    with pytest.raises(BrokenRules) as refused:
        Clusters.of(values)
    assert list(refused.value.broken) == list(values)
    assert rule in refused.value.broken[next(iter(values))]
    assert Clusters.broken_by(POOL | values) == refused.value.broken


def test_what_is_left_out_has_its_default():
    chosen = Clusters.of({"sharpness": 1e-3, "elsewhere": 7})
    assert chosen == Clusters(sharpness=1e-3)
    assert chosen.document() == {
        "selection": "clusters",
        "clusters": 8,
        "sharpness": 1e-3,
        "measure": "margin",
        "again": False,
        "cap": None,
        "seeds": [],
    }
    assert Clusters.of(chosen.document()) == chosen


@dataclass(frozen=True)
class Between(Choice):
    kind: ClassVar[Kind] = Kind.STRATEGY
    name: ClassVar[str] = "between"
    label: ClassVar[str] = "between two numbers"

    most: float | None = parameter(0.5, label="Most", above=0)
    least: float = parameter(0.1, label="Least", no_more_than="most", charged=True)
    rate: float = parameter(0.1, label="Rate", no_more_than="most", rule="At most the most, not {got}.")

    def event(self) -> None:
        return None


def test_a_number_is_no_more_than_the_one_that_bounds_it():
    assert Between.broken_by({"least": 0.5, "rate": 0.5}) == {}
    assert Between.broken_by({"least": 0.6}) == {"least": "Must be at most 0.5, got 0.6."}
    assert Between.broken_by({"rate": 0.6}) == {"rate": "At most the most, not 0.6."}
    assert Between.broken_by({"most": None, "least": 9.0, "rate": 9.0}) == {}
    assert [each.name for each in Between.parameters() if each.charged] == ["least"]


def test_the_schema_says_what_the_declaration_says():
    schema = Clusters.json_schema()
    assert schema["properties"]["selection"] == {"const": "clusters"}
    assert schema["properties"]["clusters"] == {
        "type": "integer",
        "title": "Clusters",
        "description": "How many. [clusters]",
        "minimum": 2,
        "maximum": 100,
        "default": 8,
    }
    assert schema["properties"]["sharpness"]["exclusiveMaximum"] == 1
    assert schema["properties"]["measure"]["enum"] == ["margin", "entropy"]
    assert schema["properties"]["cap"]["type"] == ["integer", "null"]
    assert "not_declared" not in schema["properties"]


def test_a_catalogue_offers_what_has_a_proof():
    catalogue = Catalogue()
    catalogue.add_source(lambda: [Chance, Clusters])
    around = {"arrival": "pool", "data_kinds": ("text", "image")}
    assert catalogue.offered(Kind.STRATEGY, oracle="trusted", **around) == [Chance, Clusters]
    assert catalogue.offered(Kind.STRATEGY, oracle="crowd", **around) == [Chance]
    assert catalogue.find(Kind.STRATEGY, "clusters") is Clusters
    assert catalogue.find(Kind.ESTIMATOR, "clusters") is None
    assert catalogue.chosen({"selection": "chance"}) == [Chance]
    assert catalogue.section_of("sharpness") == catalogue.section_of("selection") == "selection"
    assert catalogue.section_of("name") is None
    catalogue.withdraw(Clusters)
    assert catalogue.section_of("sharpness") is None
    catalogue.register(Clusters)
    assert catalogue.section_of("sharpness") == "selection"


def test_names_mean_one_thing():
    @dataclass(frozen=True)
    class Other(Chance):
        name: ClassVar[str] = "other"
        clusters: float = parameter(0.5, label="Clusters")

    @dataclass(frozen=True)
    class Twin(Chance):
        pass

    catalogue = Catalogue()
    catalogue.register(Chance, Clusters)
    with pytest.raises(ValueError, match="mean different things by clusters"):
        catalogue.register(Other)
    with pytest.raises(ValueError, match="declared twice"):
        catalogue.register(Twin)


def test_a_parameter_needs_a_plain_type_and_a_default():
    @dataclass(frozen=True)
    class Odd(Chance):
        inner: dict[str, int] = parameter(None, label="Inner")

    with pytest.raises(TypeError, match="inner"):
        Odd.parameters()
