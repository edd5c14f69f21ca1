"""Where a gate counts: one kernel, and what runs it over the files of a pool."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, Final, Protocol

import pyarrow as pa

from privacy.gate.counting import CountingGate
from privacy.gate.normalizers import Normalizer

# The package whose code every executor is handed.
KERNEL: Final = "privacy"
Tell = Callable[[int], None]


class UnknownGate(ValueError):
    """What is named is no gate that executors have the code of."""


@dataclass(frozen=True, slots=True)
class PoolFile:
    """Some rows of a pool, in one file of columns, or in some row groups of one.

    Parameters
    ----------
    number : int
        By which its content is found, however often it is rewritten.
    name : str
        Where it is stored.
    sha256 : str
        Digest of its bytes.
    first_row : int
        Rows in all files before it: coins and ranks belong to the place of a row in the pool.
    row_count : int
        Its rows, empty slots among them.
    first_group, end_group : int
        Which row groups hold them, and the first that holds none; None where all that follow do.
    """

    number: int
    name: str
    sha256: str
    first_row: int
    row_count: int
    first_group: int = 0
    end_group: int | None = None


# The rows of a file as it stands now, with contributors or without.
ReadFile = Callable[[PoolFile, bool], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class FileReader:
    """What reads the files of a pool, as a process on another host can be told it.

    Parameters
    ----------
    function : str
        `package.module:name` of what returns, for `given`, a `ReadFile`.
    given : str
        Its parameters. A key may be among them, so it is never shown.
    look : str
        `package.module:name` of what returns, for `given`, a function that raises unless it can open a file, and
        reads no row of it; empty where nobody has to look.
    """

    function: str
    given: str = field(repr=False)
    look: str = ""

    def ready(self) -> ReadFile:
        """Return what reads a file."""
        made: ReadFile = function_named(self.function)(self.given)
        return made

    def see(self, file: PoolFile) -> None:
        """Raise unless a file can be opened here."""
        if self.look:
            function_named(self.look)(self.given)(file)

    @property
    def package(self) -> str:
        """The package whose code it is."""
        return self.function.partition(".")[0]


def function_named(name: str) -> Any:
    """Return what stands as `package.module:name`."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


def name_of(function: Callable[..., Any]) -> str:
    """Return the name by which `function_named` finds a function, or a class, of a module."""
    return f"{function.__module__}:{function.__name__}"


class GateEngine(Protocol):
    """Counts a pool for a gate; whichever does it, under one key the counts are the same.

    `tell` is called now and then with the rows read so far, and raises where the work shall stop.
    """

    def opened(self, gate: CountingGate, tell: Tell) -> AbstractContextManager[None]:
        """Make ready to count for a gate, which reads no row: what is missing or away is found before anything is paid.

        Raises
        ------
        EngineFailed
            If whoever counts is away, or does not know the gate.
        """

    def counted(self, gate: CountingGate, files: Sequence[PoolFile], *, key: bytes, tell: Tell) -> list[pa.Table]:
        """Return the texts that reach the gate's minimum, with exact counts, in disjoint tables.

        Raises
        ------
        PoolDamaged
            If a file is not the one that was written.
        FileNotFoundError
            If a file is gone: it was rewritten meanwhile, and the catalogue knows its new name.
        """


def told_gate(gate: CountingGate) -> dict[str, Any]:
    """Return a gate as plain values, by which `gate_told` makes it again in another process."""
    return {"kind": name_of(type(gate)), "of": asdict(gate)}  # type: ignore[call-overload]


def gate_told(told: Mapping[str, Any]) -> CountingGate:
    """Return the gate of plain values; its class is one of this package, whose code every executor is handed.

    Raises
    ------
    UnknownGate
        If something else is named.
    """
    kind = function_named(told["kind"]) if told["kind"].startswith(f"{KERNEL}.") else None
    if not (isinstance(kind, type) and issubclass(kind, CountingGate)):
        raise UnknownGate(told["kind"])
    return kind(**told["of"] | {"normalizer": Normalizer(told["of"]["normalizer"])})


def wants_contributors(gate: CountingGate) -> bool:
    """Say whether a gate looks at who said a text."""
    return gate.texts_per_contributor is not None
