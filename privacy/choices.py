"""What a project may choose: each choice declares its parameters once, and everything else is derived from that.

A choice is a frozen dataclass in the file of its mechanism. Its fields are its parameters, declared by `parameter`; its
class says what it is called, where it has a proof, and what it is charged (`event`). From it follow the part of the
document, the JSON schema, form fields, words of the history, broken rules and the row by which the database knows it.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final, Self

from privacy.accounting.event import Event
from privacy.errors import PrivacyError
from privacy.json_values import read, written_value
from privacy.parameters import ARRIVALS, DATA_KINDS, Parameter, declared_in
from privacy.wording import as_message, joined_rules

ORACLES: Final = ("trusted", "crowd")


class Kind(StrEnum):
    """What there is to choose."""

    GATE = "gate"
    FEATURES = "features"
    STRATEGY = "strategy"
    ESTIMATOR = "estimator"
    POLICY = "policy"
    RANDOMIZER = "randomizer"
    CLASSES = "classes"
    SUGGESTIONS = "suggestions"
    MACHINE = "machine"
    LABEL_TYPE = "label_type"
    LABELLING = "labelling"
    BUDGET = "budget"
    RELEASES = "releases"
    STREAM = "stream"

    @property
    def section(self) -> str:
        """The section of the configuration document that holds it."""
        return PLACES[self][0]

    @property
    def key(self) -> str:
        """The name under which the chosen one stands there; empty where there is one declaration for all projects."""
        return PLACES[self][1]


PLACES: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.GATE: ("gate", "gate_kind"),
    Kind.FEATURES: ("features", "features"),
    Kind.STRATEGY: ("selection", "selection"),
    Kind.ESTIMATOR: ("training", "estimator"),
    Kind.POLICY: ("training", "update_policy"),
    Kind.RANDOMIZER: ("labelling", "label_randomizer"),
    Kind.CLASSES: ("labelling", ""),
    Kind.SUGGESTIONS: ("labelling", "suggestions"),
    Kind.MACHINE: ("labelling", "machine"),
    Kind.LABEL_TYPE: ("labelling", "question_kind"),
    Kind.LABELLING: ("labelling", ""),
    Kind.BUDGET: ("budget", ""),
    Kind.RELEASES: ("releases", ""),
    Kind.STREAM: ("stream", ""),
}


class BrokenRules(PrivacyError, ValueError):
    """Values that a declaration refuses, with the rule each of them breaks."""

    def __init__(self, broken: Mapping[str, str]) -> None:
        super().__init__(joined_rules(broken))
        self.broken = dict(broken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """Where a choice has a proof, and what is said elsewhere.

    Attributes
    ----------
    oracles, arrivals, data_kinds : collection of str
        Those it has a proof for.
    why_not : mapping of str to str
        For an oracle, an arrival or a data kind that is not among them, the rule that it breaks.
    """

    oracles: Collection[str] = ORACLES
    arrivals: Collection[str] = ARRIVALS
    data_kinds: Collection[str] = DATA_KINDS
    why_not: Mapping[str, str] = field(default_factory=dict)

    def broken(self, settings: Mapping[str, Any]) -> str:
        """Return the rule that a project's oracle, arrival or data kind breaks, empty where none does."""
        around = (
            (settings.get("oracle", ORACLES[0]), self.oracles),
            (settings.get("arrival", ARRIVALS[0]), self.arrivals),
            (settings.get("data_kind", DATA_KINDS[0]), self.data_kinds),
        )
        for value, sound in around:
            if value not in sound:
                return self.why_not.get(value) or as_message("This has no proof here: {around}.", around=value)
        return ""


@dataclass(frozen=True)
class Choice(ABC):
    """One thing a project may choose; a subclass is frozen, too, and its fields made by `parameter` are declared.

    Attributes
    ----------
    kind : Kind
        What it is one of.
    name : str
        Its name in documents; never given to another choice later.
    label, help : str
        What people read in a list of choices, and beside it.
    sound : Sound
        Where it has a proof.
    stays : bool
        Whether what was paid for goes on under its parameters, so that these stay after the first charge.
    hides_selection : bool
        Whether ids, numbers and times of what is asked stay among those who see the records.
    no_start : str
        Of what is found in the pool's records, at a price that the pool pays before anything else: what is said to a
        start from labelled examples, which would come before it. Empty for all others.
    """

    kind: ClassVar[Kind]
    name: ClassVar[str]
    label: ClassVar[str]
    help: ClassVar[str] = ""
    sound: ClassVar[Sound] = Sound()
    stays: ClassVar[bool] = True
    hides_selection: ClassVar[bool] = False
    no_start: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse a value outside its range."""
        broken = {each.name: each.broken(getattr(self, each.name)) for each in self.parameters()}
        if any(broken.values()):
            raise BrokenRules({name: rule for name, rule in broken.items() if rule})

    @abstractmethod
    def event(self, *args: Any, **circumstances: Any) -> Event | None:
        """Return the accountant's event of one use in circumstances that are all public, None where that is free."""

    def opening(self, settings: Mapping[str, Any]) -> Event | None:
        """Return what the pool must be able to pay before this is of any use, None where that is nothing."""
        return None

    def release(self, settings: Mapping[str, Any]) -> Event | None:
        """Return what one release of a pool's model is charged, None where that is nothing or decided elsewhere."""
        return None

    def planned(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what a project's settings are where nobody says, by their names; empty where this plans none."""
        return {}

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the rules between several settings that are broken, by the setting that breaks them.

        Those of the classes that this derives from are asked, too.
        """
        return {}

    @classmethod
    def missing(cls) -> str:
        """Say what this site lacks for the choice, empty where nothing is lacking; then it is not offered."""
        return ""

    @classmethod
    def parameters_in(cls, arrival: str, data_kind: str | None = None) -> list[Parameter]:
        """Return those parameters that apply where records arrive so, and say something of records of a kind."""
        kinds = DATA_KINDS if data_kind is None else (data_kind,)
        return [each for each in cls.parameters() if arrival in each.arrivals and {*kinds} & {*each.data_kinds}]

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Return its parameters in the order of their declaration."""
        return declared_in(cls)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the choice with the values of a project; what is left out has its default.

        Raises
        ------
        BrokenRules
            If a value is outside its range.
        """
        return cls(**{each.name: read(settings.get(each.name, each.default), each.type) for each in cls.parameters()})

    @classmethod
    def broken_by(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        """Return the rule that each setting of a project breaks under this choice, empty where it has a proof."""
        if reason := cls.sound.broken(settings) or cls.missing():
            return {cls.kind.key or cls.name: reason}
        try:
            chosen = cls.of(settings)
        except BrokenRules as error:
            return error.broken
        arrival = settings.get("arrival", ARRIVALS[0])
        broken = {
            each.name: each.elsewhere or as_message("This has no proof here: {around}.", around=arrival)
            for each in cls.parameters()
            if arrival not in each.arrivals and getattr(chosen, each.name) != each.default
        }
        broken |= _out_of_order(chosen) | _broken_rules(chosen, settings)
        if not broken and "pool_epsilon" in settings and (event := chosen.opening(settings)) is not None:
            epsilon = event.cost().epsilon
            if epsilon > settings["pool_epsilon"]:
                broken["pool_epsilon"] = as_message(
                    "This choice costs epsilon {epsilon:.3g} before anything else, more than the limit.",
                    epsilon=epsilon,
                )
        return broken

    def document(self) -> dict[str, Any]:
        """Return its part of the configuration document."""
        values = asdict(self)
        part = {each.name: written_value(values[each.name], each.decimals) for each in self.parameters()}
        return ({self.kind.key: self.name} if self.kind.key else {}) | part

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of its part of the document."""
        named = {cls.kind.key: {"const": cls.name}} if cls.kind.key else {}
        properties = named | {each.name: each.json_schema() for each in cls.parameters()}
        described = {"title": cls.label, "description": cls.help, "type": "object", "properties": properties}
        needed = [each.name for each in cls.parameters() if each.default is None and not each.optional]
        return described | {"required": [*named, *needed]}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """Return what the database's own rules ask of it, beside its parameters and where it is sound."""
        return {"hides_selection": cls.hides_selection}

    @classmethod
    def entry(cls) -> dict[str, Any]:
        """Return its line of the catalogue."""
        sound = {name: sorted(getattr(cls.sound, name)) for name in ("oracles", "arrivals", "data_kinds")}
        return {"kind": cls.kind.value, "name": cls.name, "label": cls.label, **sound, "schema": cls.json_schema()}


def _broken_rules(chosen: Choice, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return what its own rules refuse and those of all it derives from: none is lost to who does not call them."""
    declared = [vars(base)["rules"] for base in reversed(type(chosen).__mro__) if "rules" in vars(base)]
    return {name: rule for rules in declared for name, rule in rules(chosen, settings).items()}


def _out_of_order(chosen: Choice) -> dict[str, str]:
    """Return the rule of every parameter that is above another one that it may not exceed."""
    broken: dict[str, str] = {}
    for each in chosen.parameters():
        got, bound = getattr(chosen, each.name), getattr(chosen, each.no_more_than, None)
        if got is not None and bound is not None and got > bound:
            plain = as_message("Must be at most {bound:g}, got {got}.", bound=bound, got=got)
            broken[each.name] = as_message(each.rule, got=got) if each.rule else plain
    return broken
