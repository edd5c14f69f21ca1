"""Gates and readers of files, as a process on another host is told them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Final

from privacy.gate.counting import CountingGate, NotAGate, gate_from_json
from privacy.gate.engine import PoolFile, ReadFile

# The packages whose code every executor is handed.
KERNEL: Final = ("privacy", "addons")


class UnknownGate(ValueError):
    """The named gate is not installed on the executors."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reader of a pool's files, named as `package.module:name`.

    `function` returns a `ReadFile` for `given` (never shown: it may hold a key). `look` returns a function that raises
    unless it can open a file. `needs` names its further packages.
    """

    function: str
    given: str = field(repr=False)
    look: str = ""
    needs: str = ""

    def ready(self) -> ReadFile:
        made: ReadFile = resolve_name(self.function)(self.given)
        return made

    def see(self, file: PoolFile) -> None:
        if self.look:
            resolve_name(self.look)(self.given)(file)


def name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{function.__name__}"


def gate_told(told: Mapping[str, Any]) -> CountingGate:
    """Return the gate of plain values, of a class of `privacy` alone; `UnknownGate` if something else is named."""
    if not told["kind"].startswith("privacy."):
        raise UnknownGate(told["kind"])
    try:
        return gate_from_json(told)
    except NotAGate as error:
        raise UnknownGate(told["kind"]) from error
