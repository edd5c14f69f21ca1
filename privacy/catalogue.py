"""The choices there are, by kind and name."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from threading import Lock, local
from types import MappingProxyType
from typing import Any

from privacy.choices import Choice, Kind
from privacy.parameters import Parameter


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

        Raises
        ------
        ValueError
            If a name is taken, or a parameter's name means something else elsewhere.
        TypeError
            If a choice does not answer what the product asks of its kind.
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
        """Take a choice away again."""
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
        """Return the choices of a kind, in the order in which they were registered."""
        return [choice for choice in self.all() if choice.kind == kind]

    def find(self, kind: Kind, name: str) -> type[Choice] | None:
        """Return a choice by its name, None where there is none."""
        self._load_all()
        return self._choices.get((kind, name))

    def offered(self, kind: Kind, *, oracle: str, arrival: str, data_kinds: Collection[str]) -> list[type[Choice]]:
        """Return what this site has of a kind and what has a proof in front of an oracle, for one of the data kinds."""
        return [
            choice
            for choice in self.of_kind(kind)
            if oracle in choice.sound.oracles
            and arrival in choice.sound.arrivals
            and set(data_kinds) & set(choice.sound.data_kinds)
            and not choice.missing()
        ]

    def chosen(self, settings: Mapping[str, Any]) -> list[type[Choice]]:
        """Return the declarations that the settings of a project name, and those that every project has."""
        return [choice for choice in self.all() if not choice.kind.key or settings.get(choice.kind.key) == choice.name]

    def parameters(self) -> Mapping[str, Parameter]:
        """Return every parameter by its name, as the first choice that has it declares it."""
        found = self._parameters
        if found is None or self._sources:
            declared: dict[str, Parameter] = {}
            for choice in self.all():
                for each in choice.parameters():
                    declared.setdefault(each.name, each)
            self._parameters = found = MappingProxyType(declared)
        return found

    def kind_of(self, name: str) -> Kind | None:
        """Return the kind whose choices a setting belongs to, None where no choice declares it."""
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
