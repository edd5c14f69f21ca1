"""Gates and readers of files, as a process on another host is told them."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pkgutil import resolve_name
from typing import Any, Final

from privacy.gate.counting import CountingGate
from privacy.gate.engine import PoolFile, ReadFile
from privacy.gate.normalizers import Normalizer

# The packages whose code every executor is handed.
KERNEL: Final = ("privacy", "addons")


class UnknownGate(ValueError):
    """The named gate is not installed on the executors."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reader of a pool's files, named as `package.module:name`.

    `function` returns a `ReadFile` for `given`, among which may be a key, so that it is never shown. `look` returns a
    function that raises unless it can open a file, and reads none of its rows; empty skips the check. `needs` names
    packages that it imports besides those of `KERNEL`, with spaces between them.
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


def told_gate(gate: CountingGate) -> dict[str, Any]:
    return {"kind": name_of(type(gate)), "of": asdict(gate)}  # type: ignore[call-overload]


def gate_told(told: Mapping[str, Any]) -> CountingGate:
    """Return the gate of plain values, of a class of `privacy` alone; `UnknownGate` if something else is named."""
    kind = resolve_name(told["kind"]) if told["kind"].startswith("privacy.") else None
    if not (isinstance(kind, type) and issubclass(kind, CountingGate)):
        raise UnknownGate(told["kind"])
    return kind(**told["of"] | {"normalizer": Normalizer(told["of"]["normalizer"])})
