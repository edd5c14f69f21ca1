"""Who reads, why a value may be read, and the row that says both of some values in one place."""

from dataclasses import dataclass
from enum import StrEnum


class Reader(StrEnum):
    """A role in which somebody reads."""

    OUTSIDER = "outsider"
    ANNOTATOR = "annotator"
    PARTICIPANT = "crowd participant"
    ENGINEER = "engineer"
    MANAGER = "manager"
    REVIEWER = "reviewer"
    OPERATOR = "operator"


class Basis(StrEnum):
    """Why a value may be read by somebody from whom a record, or an answer, is protected."""

    PUBLIC = "public parameter"
    PAID = "paid output"
    DERIVED = "post-processing of paid output"
    OWN = "own data"
    INSIDE = "inside the boundary"
    MANAGERS = "managers only"
    OPERATORS = "operators only"
    BOOKKEEPING = "bookkeeping, public by declaration"


EVERYBODY = frozenset(Reader)
LABELLERS = frozenset({Reader.ANNOTATOR, Reader.PARTICIPANT})
MEMBERS = frozenset({*LABELLERS, Reader.ENGINEER, Reader.MANAGER, Reader.REVIEWER})
# Who comes for models.
MODELS = frozenset({Reader.ENGINEER, Reader.MANAGER})
MANAGERS = frozenset({Reader.MANAGER})
OPERATORS = frozenset({Reader.OPERATOR})
# Annotators of a trusted project; a manager may be one, too.
TRUSTED = frozenset({Reader.ANNOTATOR, Reader.MANAGER})
# Whoever reviews in a trusted project; the database gives nobody the role in front of a crowd.
REVIEWERS = frozenset({Reader.MANAGER, Reader.REVIEWER})

# In a row's names: any name, or any that begins so.
ANY = "*"


@dataclass(frozen=True, slots=True)
class Shown:
    """Values that some roles read in some place, and why they may.

    `where` names the place: a schema of the REST interface, templates of pages, a file, a kind of message; several are
    separated by spaces. `what` holds the names, separated by spaces, too; one that ends with `*` is all that begin so.
    """

    where: str
    what: str
    readers: frozenset[Reader]
    basis: Basis
    why: str

    @property
    def places(self) -> tuple[str, ...]:
        """Return the places one by one."""
        return tuple(self.where.split())

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names one by one."""
        return tuple(self.what.split())

    def covers(self, name: str) -> bool:
        """Say whether a name is one of this row's."""
        return any(name == own or (own.endswith(ANY) and name.startswith(own[:-1])) for own in self.names)


def for_managers(where: str, what: str, why: str) -> Shown:
    """Return a row of what managers alone read, who are inside."""
    return Shown(where, what, MANAGERS, Basis.MANAGERS, why)


def for_operators(where: str, what: str, why: str) -> Shown:
    """Return a row of what operators of the site alone read."""
    return Shown(where, what, OPERATORS, Basis.OPERATORS, why)


def rows_for(table: tuple[Shown, ...], places: frozenset[str], name: str) -> list[Shown]:
    """Return the rows of a table that speak of a name in any of some places."""
    return [row for row in table if not places.isdisjoint(row.places) and row.covers(name)]


def readers_of(table: tuple[Shown, ...], places: frozenset[str], name: str) -> frozenset[Reader]:
    """Return who may read a name in any of some places; nobody where no row speaks of it."""
    return frozenset[Reader]().union(*(row.readers for row in rows_for(table, places, name)))
