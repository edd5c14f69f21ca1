"""The cards of a person's projects."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from annotation.budget.presenters import Metered
from annotation.models import Membership, Oracle, Project, ProjectState, Role
from annotation.models.configurations import read_ahead
from annotation.questions.work_limits import NOTHING_WAITS, Waiting, waiting_for
from annotation.selectors import Person, projects_of
from privacy.ledger.selectors import Guarantee, answers_paid, guarantees

# Who may read of every project they are in what it spent and what it released.
INSIDE: Final = frozenset({Role.MANAGER, Role.ENGINEER})


@dataclass(frozen=True, slots=True)
class CardBudget(Metered):
    guarantee: Guarantee
    all_paid: bool = False


@dataclass(frozen=True, slots=True)
class CardModel:
    version: int
    accuracy: float | None = None
    constant: float | None = None
    described: float | None = None
    loses_to: str = ""


# Who knows the models adds a function from projects to their newest releases, in a fixed number of statements.
MODEL_SOURCES: Final[list[Callable[[Collection[int]], Mapping[int, CardModel]]]] = []


@dataclass(frozen=True, slots=True)
class ProjectCard:
    project: Project
    roles: tuple[str, ...]
    budgets: tuple[CardBudget, ...] = ()
    model: CardModel | None = None
    # Whether a question waits for the person, or what keeps it; looked up where they are an annotator.
    waiting: Waiting = NOTHING_WAITS

    @property
    def words(self) -> list[str]:
        return [
            str(Oracle(self.project.oracle).label).partition(":")[0],
            *(str(Role(role).label) for role in self.roles),
        ]

    @property
    def look(self) -> str:
        """The state that makes a card look other than a healthy one; empty for a healthy one."""
        if self.model is not None and self.model.loses_to:
            return "losing"
        if any(sheet.is_full for sheet in self.budgets):
            return "spent"
        return "paused" if self.project.state == ProjectState.PAUSED else ""

    @property
    def stands(self) -> bool:
        return bool(self.budgets)


def project_cards(*, user: Person, closed: bool = False) -> list[ProjectCard]:
    """Return the person's projects, newest first: those at work, or those put away or deleted."""
    roles: dict[int, list[str]] = defaultdict(list)
    for project_id, role in Membership.objects.filter(user=user.pk).order_by("role").values_list("project", "role"):
        roles[project_id].append(role)
    states = (ProjectState.ARCHIVED, ProjectState.DELETED) if closed else (ProjectState.ACTIVE, ProjectState.PAUSED)
    found = projects_of(user).filter(state__in=states).order_by("-pk")
    projects = list(found.select_related("pool_account", "labels_account"))
    inside = [project for project in projects if INSIDE.intersection(roles[project.pk])]
    budgets = _budgets(inside)
    models = {key: model for source in MODEL_SOURCES if inside for key, model in source([p.pk for p in inside]).items()}
    answering = [project for project in projects if Role.ANNOTATOR in roles[project.pk] and not closed]
    read_ahead(project.configuration_id for project in answering)
    waiting = waiting_for(user, answering) if answering else {}
    return [
        ProjectCard(
            project,
            tuple(roles[project.pk]),
            budgets.get(project.pk, ()),
            models.get(project.pk),
            waiting.get(project.pk, NOTHING_WAITS),
        )
        for project in projects
    ]


def project_card(project: Project) -> ProjectCard:
    models = {key: model for source in MODEL_SOURCES for key, model in source([project.pk]).items()}
    return ProjectCard(project, (), _budgets([project])[project.pk], models.get(project.pk))


def _budgets(projects: Iterable[Project]) -> dict[int, tuple[CardBudget, ...]]:
    accounts = {
        project.pk: [account for account in (project.pool_account, project.labels_account) if account is not None]
        for project in projects
    }
    if not accounts:
        return {}
    known = guarantees(account for each in accounts.values() for account in each)
    paid = answers_paid(known)
    return {
        key: tuple(CardBudget(known[account.pk], all_paid=account.pk in paid) for account in each)
        for key, each in accounts.items()
    }
