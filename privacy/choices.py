"""Choices of a project: declared parameters, what they cost, and the catalogue of all."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from enum import StrEnum
from functools import cache
from threading import Lock, local
from types import MappingProxyType, NoneType
from typing import Any, ClassVar, Final, Protocol, Self, final, get_args, get_origin, get_type_hints, runtime_checkable

from privacy.accounting.event import Event
from privacy.errors import PrivacyError
from privacy.json_values import FORMATS, JSON_TYPES, NUMBERS, beyond_bounds, mistyped, pattern_of, read, written_value
from privacy.wording import as_message, joined_rules
from privacy.wording import gettext_noop as _

DECLARATION: Final = "parameter"
ARRIVALS: Final = ("pool", "stream")
DATA_KINDS: Final = ("text", "table", "image")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a choice.

    Attributes
    ----------
    name : str
        Its name in the document, in forms and over REST; two choices that use a name mean the same by it.
    type : type
        bool, int, float, str, tuple for a list of texts, Decimal for an amount of money, or time for one of the day.
    default : object
        What it is where nobody says otherwise; None where it must be said and is not optional.
    label, help : str
        What people read beside it: its name, and what it does.
    unit : str
        What it is counted in, where that is not plain from its name.
    above, at_least, below, at_most : float or None
        Its range.
    options : mapping of str to str
        The values it may have, with their labels, where these are few.
    rule : str
        What is said to a value outside the range; `{got}` is the value.
    pattern : str
        What a text must look like that is not empty.
    decimals : int
        How many an amount of money has at most.
    optional : bool
        Whether it may be left empty.
    arrivals : collection of str
        Where it applies; elsewhere it keeps its default and no form asks for it.
    data_kinds : collection of str
        Of which records it says anything; of others no form asks for it, and it may have any value.
    no_more_than : str
        Another parameter of the same choice that this one is never above.
    charged : bool
        Whether what one use is charged rests on it, so that a document names it unless it may be left empty.
    """

    name: str
    type: type
    default: Any
    label: str
    help: str = ""
    unit: str = ""
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    rule: str = ""
    pattern: str = ""
    decimals: int = 0
    optional: bool = False
    arrivals: Collection[str] = ARRIVALS
    data_kinds: Collection[str] = DATA_KINDS
    no_more_than: str = ""
    charged: bool = False

    def broken(self, value: Any) -> str:
        """Return the rule that a value breaks, typed or as a document has it; empty where it breaks none."""
        value = read(value, self.type)
        if value is None or value == "":
            may_be_empty = self.optional or (value == "" and self.type is str and not self.options)
            return "" if may_be_empty else as_message(self.rule, got=value) if self.rule else _("Is missing.")
        if mistyped := self.mistyped(value):
            return mistyped
        if self.options and value not in self.options:
            return as_message("Must be one of {possible}, got {got}.", possible=", ".join(self.options), got=value)
        if self.pattern and not re.fullmatch(self.pattern, value):
            return as_message(self.rule, got=value)
        broken = ""
        if self.type in NUMBERS:
            bounds = {"above": self.above, "at_least": self.at_least, "below": self.below, "at_most": self.at_most}
            broken = beyond_bounds(value, decimals=self.decimals, **bounds)
        return as_message(self.rule, got=value) if broken and self.rule else broken

    def mistyped(self, value: Any) -> str:
        return "" if value is None and self.optional else mistyped(read(value, self.type), self.type)

    def json_schema(self) -> dict[str, Any]:
        kind = JSON_TYPES[self.type]
        bounds = {
            "exclusiveMinimum": self.above,
            "minimum": self.at_least,
            "exclusiveMaximum": self.below,
            "maximum": self.at_most,
        }
        schema: dict[str, Any] = {"type": [kind, "null"] if self.optional else kind, "title": self.label}
        schema |= {"description": " ".join(part for part in (self.help, self.unit and f"[{self.unit}]") if part)}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
        if self.options:
            schema["enum"] = [*self.options, *([None] if self.optional else [])]
        if self.type is tuple:
            schema["items"] = {"type": "string"}
        if self.type in FORMATS:
            schema["format"] = FORMATS[self.type]
        if pattern := self.pattern or pattern_of(self.type, self.decimals):
            schema["pattern"] = f"^({pattern})?$" if self.type is str else f"^{pattern}$"
        return schema | {"default": written_value(self.default, self.decimals)}


def parameter(
    default: Any,
    *,
    label: str,
    help: str = "",  # noqa: A002
    unit: str = "",
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    options: Mapping[str, str] | None = None,
    rule: str = "",
    pattern: str = "",
    decimals: int = 0,
    arrivals: Collection[str] = ARRIVALS,
    data_kinds: Collection[str] = DATA_KINDS,
    no_more_than: str = "",
    charged: bool = False,
) -> Any:
    """Declare a parameter of a choice; its type is the field's annotation, `| None` makes it optional."""
    declared = {name: said for name, said in locals().items() if name != "default"}  # the dataclass holds that
    declared |= {"options": dict(options or {}), "arrivals": tuple(arrivals), "data_kinds": tuple(data_kinds)}
    return field(default=default, metadata={DECLARATION: declared})


@cache
def declared_in(choice: type[Any]) -> tuple[Parameter, ...]:
    """Return the parameters that a dataclass declares, in their order.

    `TypeError` if one has no default, or a type that a document cannot hold.
    """
    hints = get_type_hints(choice)
    return tuple(_parameter(each, hints[each.name]) for each in fields(choice) if DECLARATION in each.metadata)


def _parameter(declared: "Field[Any]", hint: Any) -> Parameter:
    optional = NoneType in get_args(hint)
    known = [part for part in get_args(hint) if part is not NoneType] if optional else [hint]
    plain = get_origin(known[0]) or known[0]
    if len(known) != 1 or plain not in JSON_TYPES:
        raise TypeError(f"parameter {declared.name} must be of a type that a document can hold, got {hint}")
    if declared.default is MISSING:
        raise TypeError(f"parameter {declared.name} must have a default")
    values = declared.metadata[DECLARATION]
    return Parameter(name=declared.name, type=plain, default=declared.default, optional=optional, **values)


ORACLES: Final = ("trusted", "crowd")


class Kind(StrEnum):
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
    def __init__(self, broken: Mapping[str, str]) -> None:
        super().__init__(joined_rules(broken))
        self.broken = dict(broken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """Circumstances in which a choice has a proof, and reasons for refusing it elsewhere.

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
                return self.why_not.get(value) or as_message("No proof for this with: {around}.", around=value)
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
        What people read in a list of choices.
    sound : Sound
        Where it has a proof.
    stays : bool
        Whether what was paid for goes on under its parameters, so that these stay after the first charge.
    """

    kind: ClassVar[Kind]
    name: ClassVar[str]
    label: ClassVar[str]
    help: ClassVar[str] = ""
    sound: ClassVar[Sound] = Sound()
    stays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        broken = {each.name: each.broken(getattr(self, each.name)) for each in self.parameters()}
        if any(broken.values()):
            raise BrokenRules({name: rule for name, rule in broken.items() if rule})

    @abstractmethod
    def event(self, *args: Any, **circumstances: Any) -> Event | None:
        """Return the accountant's event of one use in circumstances that are all public, None where that is free."""

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the rules between several settings that are broken, by the setting that breaks them.

        Those of the classes that this derives from are asked, too.
        """
        return {}

    @final
    @classmethod
    def parameters_in(cls, arrival: str, data_kind: str | None = None) -> list[Parameter]:
        kinds = DATA_KINDS if data_kind is None else (data_kind,)
        return [each for each in cls.parameters() if arrival in each.arrivals and {*kinds} & {*each.data_kinds}]

    @final
    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        return declared_in(cls)

    @final
    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the choice with the values of a project, or defaults; `BrokenRules` if one is outside its range."""
        return cls(**{each.name: read(settings.get(each.name, each.default), each.type) for each in cls.parameters()})

    @final
    @classmethod
    def broken_by(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        """Return the rule that each setting of a project breaks under this choice, empty where it has a proof."""
        if reason := cls.sound.broken(settings) or missing_for(cls):
            return {cls.kind.key or cls.name: reason}
        try:
            chosen = cls.of(settings)
        except BrokenRules as error:
            return error.broken
        arrival = settings.get("arrival", ARRIVALS[0])
        broken = {
            each.name: as_message("No proof for this with: {around}.", around=arrival)
            for each in cls.parameters()
            if arrival not in each.arrivals and getattr(chosen, each.name) != each.default
        }
        return broken | _out_of_order(chosen) | _broken_rules(chosen, settings)

    @final
    def document(self) -> dict[str, Any]:
        values = asdict(self)
        part = {each.name: written_value(values[each.name], each.decimals) for each in self.parameters()}
        return ({self.kind.key: self.name} if self.kind.key else {}) | part

    @final
    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        named = {cls.kind.key: {"const": cls.name}} if cls.kind.key else {}
        properties = named | {each.name: each.json_schema() for each in cls.parameters()}
        described = {"title": cls.label, "description": cls.help, "type": "object", "properties": properties}
        needed = [each.name for each in cls.parameters() if each.default is None and not each.optional]
        return described | {"required": [*named, *needed]}


@dataclass(frozen=True)
class FreeChoice(Choice):
    """A choice that is charged nothing."""

    def event(self, *args: Any, **circumstances: Any) -> None:
        return None


@runtime_checkable
class Plans(Protocol):
    """A choice that proposes settings where a project leaves them out."""

    def planned(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the proposed settings by name."""


@runtime_checkable
class NeedsMore(Protocol):
    """A choice that needs something a site may lack; it is not offered there."""

    @classmethod
    def missing(cls) -> str:
        """Say what this site lacks, empty where nothing is lacking."""


def missing_for(choice: type[Choice]) -> str:
    return choice.missing() if isinstance(choice, NeedsMore) else ""


def _broken_rules(chosen: Choice, settings: Mapping[str, Any]) -> dict[str, str]:
    declared = [vars(base)["rules"] for base in reversed(type(chosen).__mro__) if "rules" in vars(base)]
    return {name: rule for rules in declared for name, rule in rules(chosen, settings).items()}


def _out_of_order(chosen: Choice) -> dict[str, str]:
    broken: dict[str, str] = {}
    for each in chosen.parameters():
        got, bound = getattr(chosen, each.name), getattr(chosen, each.no_more_than, None)
        if got is not None and bound is not None and got > bound:
            plain = as_message("Must be at most {bound:g}, got {got}.", bound=bound, got=got)
            broken[each.name] = as_message(each.rule, got=got) if each.rule else plain
    return broken


class Catalogue:
    """The choices there are, by kind and name; whole packages of them may be loaded when they are first asked for."""

    def __init__(self) -> None:
        self._choices: dict[tuple[Kind, str], type[Choice]] = {}
        self._sources: list[Callable[[], Iterable[type[Choice]]]] = []
        # Every setting is asked for its section whenever a project is read.
        self._kinds: dict[str, Kind] | None = None
        self._parameters: Mapping[str, Parameter] | None = None
        # What the product asks of every choice of a kind, where that is more than of any choice.
        self._bases: dict[Kind, tuple[type, ...]] = {}
        self._registering, self._thread = Lock(), local()

    def require(self, kind: Kind, *bases: type) -> None:
        """Take no choice of a kind from now on but those that derive from one of these: they answer what is asked."""
        self._bases[kind] = bases

    def register(self, *choices: type[Choice]) -> None:
        """Add choices.

        `ValueError` if a name is taken, or a parameter's name means something else elsewhere; `TypeError` if a choice
        does not answer what the product asks of its kind.
        """
        for choice in choices:
            bases = self._bases.get(choice.kind, (Choice,))
            if not issubclass(choice, bases):
                wanted = " or ".join(base.__name__ for base in bases)
                raise TypeError(f"{choice.kind} {choice.name} must be a {wanted}, since nothing else is asked")
            if left_out := ", ".join(sorted(choice.__abstractmethods__)):
                raise TypeError(f"{choice.kind} {choice.name} leaves out {left_out}")
            taken = self._choices.get((choice.kind, choice.name))
            if taken is not None and taken is not choice:
                raise ValueError(f"{choice.kind} {choice.name} is declared twice")
            for other in self._choices.values():
                _refuse_other_meaning(choice, other)
            self._choices[choice.kind, choice.name] = choice
            self._kinds = self._parameters = None

    def withdraw(self, choice: type[Choice]) -> None:
        del self._choices[choice.kind, choice.name]
        self._kinds = self._parameters = None

    def add_source(self, source: Callable[[], Iterable[type[Choice]]]) -> None:
        """Let a package name its choices when somebody first asks, since what they import may be large."""
        self._sources.append(source)

    def all(self) -> Iterator[type[Choice]]:
        """Yield every choice, to whichever thread asks first and to those that ask meanwhile."""
        self._load_all()
        yield from list(self._choices.values())

    def _load_all(self) -> None:
        for source in list(self._sources):
            self._load(source)

    def _load(self, source: Callable[[], Iterable[type[Choice]]]) -> None:
        """Register what a source names; it stays where that fails.

        Two threads may ask a source at once, since imports wait for each other by locks of their own, and one of ours
        held meanwhile could wait for theirs. What a source imports may ask for the choices there are so far.
        """
        under_way = self._thread.__dict__.setdefault("sources", [])
        if source in under_way:
            return
        under_way.append(source)
        try:
            choices = tuple(source())
        finally:
            under_way.remove(source)
        with self._registering:
            if source in self._sources:
                self.register(*choices)
                self._sources.remove(source)

    def of_kind(self, kind: Kind) -> list[type[Choice]]:
        return [choice for choice in self.all() if choice.kind == kind]

    def find(self, kind: Kind, name: str) -> type[Choice] | None:
        self._load_all()
        return self._choices.get((kind, name))

    def offered(self, kind: Kind, *, oracle: str, arrival: str, data_kinds: Collection[str]) -> list[type[Choice]]:
        return [
            choice
            for choice in self.of_kind(kind)
            if oracle in choice.sound.oracles
            and arrival in choice.sound.arrivals
            and set(data_kinds) & set(choice.sound.data_kinds)
            and not missing_for(choice)
        ]

    def chosen(self, settings: Mapping[str, Any]) -> list[type[Choice]]:
        return [choice for choice in self.all() if not choice.kind.key or settings.get(choice.kind.key) == choice.name]

    def parameters(self) -> Mapping[str, Parameter]:
        found = self._parameters
        if found is None or self._sources:
            declared: dict[str, Parameter] = {}
            for choice in self.all():
                for each in choice.parameters():
                    declared.setdefault(each.name, each)
            self._parameters = found = MappingProxyType(declared)
        return found

    def kind_of(self, name: str) -> Kind | None:
        if self._kinds is None or self._sources:
            kinds: dict[str, Kind] = {}
            for choice in self.all():
                for each in (choice.kind.key, *(each.name for each in choice.parameters())):
                    kinds.setdefault(each, choice.kind)
            self._kinds = kinds
        return self._kinds.get(name)

    def section_of(self, name: str) -> str | None:
        """Return the section of the document that holds a setting, None where no choice declares it."""
        kind = self.kind_of(name)
        return None if kind is None else kind.section


def _refuse_other_meaning(choice: type[Choice], other: type[Choice]) -> None:
    """Refuse a name that stands for something else already: documents and forms know parameters by name alone."""
    known = {each.name: each for each in other.parameters()}
    for each in choice.parameters():
        same = known.get(each.name)
        if same is not None and (same.type is not each.type or other.kind.section != choice.kind.section):
            raise ValueError(f"{choice.name} and {other.name} mean different things by {each.name}")
