"""Base of all accounting events: a frozen record of one mechanism's parameters that can price itself."""

# The ledger stores events as JSON and an auditor prices them again, so a kind's fields and formula never change once
# entries exist: a new formula is a new kind or a new version.

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Self, get_args, get_type_hints

from privacy.accounting.cost import Adjacency, Cost

REGISTRY: dict[str, "type[Event]"] = {}


@dataclass(frozen=True, slots=True)
class EventWords:
    """English words for people about an event; marked for translation where a project of the site can be charged it.

    Attributes
    ----------
    name : str
        Its mechanism in two or three words, for tables and plots.
    how : str, or two of them
        What was done, with parameters of the event as ``%(name)s``; two where one is told otherwise than several.
    counted : str
        The parameter that says how many; empty where `how` is one text.
    """

    name: str
    how: str | tuple[str, str]
    counted: str = ""


@dataclass(frozen=True, slots=True)
class Event(ABC):
    """One operation on private data, as the ledger stores it.

    Attributes
    ----------
    kind : str
        Name under which the event is stored; never reused for other parameters.
    version : int
        Version of the fields and the cost formula of this kind.
    words : EventWords or None
        What people read of it; every event of this package has them, and else its summary is shown.
    valid_for : frozenset of str
        Adjacencies for which `cost` has a proof.
    """

    kind: ClassVar[str] = ""
    version: ClassVar[int] = 1
    words: ClassVar[EventWords | None] = None
    valid_for: ClassVar[frozenset[Adjacency]] = frozenset()

    def __init_subclass__(cls) -> None:
        if not cls.kind:
            return
        # dataclass(slots=True) builds the class a second time under the same name.
        known = REGISTRY.get(cls.kind)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise TypeError(f"event kind {cls.kind!r} already belongs to {known.__qualname__}")
        REGISTRY[cls.kind] = cls

    @abstractmethod
    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the charge under `adjacency`, recomputed from the parameters; `NoProof` names the missing rule."""

    @abstractmethod
    def summary(self) -> str:
        """Return one short sentence for a statement."""

    @property
    def needs_parent(self) -> bool:
        return False

    @property
    def series_kinds(self) -> tuple[str, ...]:
        return (self.kind,)

    def check_parent(self, parent: "Event | None") -> None:
        """Raise `ValueError` unless `parent` is an event this one may descend from."""
        if self.needs_parent and parent is None:
            raise ValueError(f"{self.kind} must name the entry it descends from")

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float | None:
        return None

    def in_rho(self) -> "Event":
        """Return the same mechanism as an account that sums rhos is charged: with no point of its curve, if it has one.

        A Gaussian release has its rho whole, so a delta beside it would be paid twice.
        """
        return self

    def to_json(self) -> dict[str, Any]:
        """Return kind, version and every parameter; nested events become nested objects."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        encoded = {name: _encode(value) for name, value in values.items()}
        return {"kind": self.kind, "version": self.version, **encoded}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Build the event from stored parameters, refusing unknown, missing and mistyped ones."""
        hints = get_type_hints(cls)
        names = [field.name for field in fields(cls)]
        unknown, missing = sorted(set(parameters) - set(names)), [name for name in names if name not in parameters]
        if unknown or missing:
            raise ValueError(f"{cls.kind}: unknown fields {unknown}, missing fields {missing}")
        return cls(**{name: _decode(cls.kind, name, parameters[name], hints[name]) for name in names})


def _encode(value: Any) -> Any:
    if isinstance(value, Event):
        return value.to_json()
    return list(value) if isinstance(value, tuple) else value


def _decode(kind: str, name: str, value: Any, hint: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, Event):
        nested = event_from_json(value)
        if not isinstance(nested, hint):
            raise ValueError(f"{kind}: field {name} must be a {hint.kind} event, got {nested.kind}")
        return nested
    if hint in (tuple[float, ...], tuple[int, ...]):
        if not isinstance(value, list | tuple):
            raise ValueError(f"{kind}: field {name} must be a list, got {type(value).__name__}")
        return tuple(_decode(kind, name, part, get_args(hint)[0]) for part in value)
    if isinstance(value, bool) != (hint is bool):
        raise ValueError(f"{kind}: field {name} has the wrong type, got {type(value).__name__}")
    if hint is float:
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{kind}: field {name} must be a finite number, got {value!r}")
        return float(value)
    if hint is int and not isinstance(value, int):
        raise ValueError(f"{kind}: field {name} must be an integer, got {value!r}")
    if hint not in (int, float, bool) and not isinstance(value, str):
        raise ValueError(f"{kind}: field {name} must be text, got {type(value).__name__}")
    return value


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Return the event that `data` (as written by `Event.to_json`) stands for.

    Parameters
    ----------
    data : mapping
        ``kind``, ``version`` and every parameter of the kind.

    Raises
    ------
    ValueError
        If the kind or version is unknown, or a field is unknown, missing, mistyped or out of range.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"an event must be an object, got {type(data).__name__}")
    kind = data.get("kind")
    event_class = REGISTRY.get(kind) if isinstance(kind, str) else None
    if event_class is None:
        raise ValueError(f"unknown event kind {kind!r}")
    if data.get("version") != event_class.version:
        raise ValueError(f"{kind}: unknown version {data.get('version')!r}")
    return event_class.from_parameters({name: value for name, value in data.items() if name not in ("kind", "version")})


def counted_words(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"


NOISE_WORDS: Final[Mapping[str, str]] = {
    "discrete_laplace": "discrete Laplace noise",
    "exponential": "exponential weights",
    "gaussian": "Gaussian noise",
    "k_norm": "K-norm noise",
    "laplace": "Laplace noise",
    "truncated_geometric": "truncated geometric noise",
    "weighted_gaussian": "weighted Gaussian noise",
}
