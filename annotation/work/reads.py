"""Declarations of who may read a value and why, made at the field or in the template that shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, ClassVar

from django.template.base import Node
from django.template.context import Context
from ninja import Schema


class Reader(StrEnum):
    OUTSIDER = "outsider"
    ANNOTATOR = "annotator"
    PARTICIPANT = "crowd participant"
    ENGINEER = "engineer"
    MANAGER = "manager"
    REVIEWER = "reviewer"
    OPERATOR = "operator"


class Basis(StrEnum):
    """Reason why somebody from whom a record or an answer is protected may read a value."""

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
# In front of a crowd the database gives nobody the role of a reviewer.
REVIEWERS = frozenset({Reader.MANAGER, Reader.REVIEWER})
# Who comes for models.
MODELS = frozenset({Reader.ENGINEER, Reader.MANAGER})


@dataclass(frozen=True, slots=True)
class Permission:
    readers: frozenset[Reader]
    basis: Basis
    why: str


class Reads(Enum):
    """Readers of a value and the reason, by the name that fields and templates give."""

    SITE = Permission(EVERYBODY, Basis.PUBLIC, "words, rules and catalogue of the site, the same for every project")
    OWN = Permission(EVERYBODY, Basis.OWN, "the reader's own account, roles, requests and what came of them")
    BODY = Permission(
        EVERYBODY, Basis.DERIVED, "of the body it comes with: length, name, next page, digest, whether it is retired"
    )
    PROJECT = Permission(
        LABELLERS | MODELS | REVIEWERS, Basis.PUBLIC, "declared by the project's managers, its state among it"
    )
    GUIDELINES = Permission(
        LABELLERS | REVIEWERS, Basis.PUBLIC, "written by managers for those who are asked or review; made-up examples"
    )
    TASK = Permission(
        LABELLERS, Basis.PUBLIC, "declared by managers for annotators: question, classes, limits of the promise"
    )
    OWN_WORK = Permission(
        LABELLERS,
        Basis.OWN,
        "the reader's own lease, answers, words and pace; never what others answered. In a crowd, work is judged by "
        "hidden checks alone, whose answers are not protected",
    )
    ASKED = Permission(
        LABELLERS,
        Basis.PAID,
        "in a crowd project gate output; in a trusted one the record itself, which its annotators may see",
    )
    ASKED_INSIDE = Permission(LABELLERS, Basis.INSIDE, "columns or image of a record, in trusted projects alone")
    GUESSED = Permission(
        LABELLERS,
        Basis.DERIVED,
        "a released model applied to the question; whether any question is open, by what was asked and how often it "
        "was answered, never by what was answered",
    )
    TRUSTED = Permission(
        frozenset({Reader.ANNOTATOR, Reader.MANAGER}),
        Basis.INSIDE,
        "columns the owner declared to be shown, and what became of answers, in trusted projects alone",
    )
    REVIEW = Permission(
        REVIEWERS,
        Basis.INSIDE,
        "the record, how many gave which answer without their names, and what the reader decided: reviewers are inside",
    )
    SETTINGS = Permission(
        MODELS,
        Basis.PUBLIC,
        "settings, prices, limits, libraries, keys, public test sets, simulations on data about nobody, questions "
        "asked and not answers agreed on; of a secret sample its law alone",
    )
    LEDGER = Permission(
        MODELS,
        Basis.BOOKKEEPING,
        "sums over entries, their hashes, what was done with a version, by whom and why; times to the second",
    )
    RELEASED = Permission(
        MODELS,
        Basis.PAID,
        "released weights, shares of classes, what a visible round asked, digests under a key of the site",
    )
    MEASURED = Permission(
        MODELS,
        Basis.DERIVED,
        "released models on public examples, made-up records, what passed the gate or what the reader brought; "
        "audits; what is left at declared prices",
    )
    VIEW = Permission(MODELS, Basis.OWN, "what the reader asked for, and whether they manage the project")
    MANAGED = Permission(
        frozenset({Reader.MANAGER}), Basis.MANAGERS, "uploads, answers, people, work and settings: managers are inside"
    )
    POPULATION = Permission(
        frozenset({Reader.MANAGER, Reader.OPERATOR}),
        Basis.BOOKKEEPING,
        "limits of a population and sums over the entries of its projects, for its managers and who opens it",
    )
    OPERATED = Permission(
        frozenset({Reader.OPERATOR}), Basis.OPERATORS, "queues and work of all projects; operators read the database"
    )


class Answer(Schema):
    """Base class of what the REST interface answers: each class or field declares who reads it.

    A class says `reads=` for all of its fields; a field has its own as `Annotated[..., Reads.LEDGER]`. The keys of a
    free document are read as its field is.
    """

    declared: ClassVar[Reads | None] = None

    def __init_subclass__(cls, *, reads: Reads | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if reads is not None:
            cls.declared = reads

    @classmethod
    def field_reads(cls) -> dict[str, set[Reads]]:
        return {
            name: {each for each in field.metadata if isinstance(each, Reads)}
            or ({cls.declared} if cls.declared else set())
            for name, field in cls.model_fields.items()
        }


class ReadsNode(Node):
    """Declarations of a template: who may read each expression that it writes or decides by. It renders nothing."""

    def __init__(self, declared: Mapping[Reads, tuple[str, ...]]) -> None:
        self.declared = declared

    def render(self, context: Context) -> str:
        return ""
