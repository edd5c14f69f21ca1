"""Forecast of a project: models that the budget still pays for, and how accurate they become."""

from dataclasses import dataclass
from typing import Final

from annotation.budget import charges
from annotation.budget.label_budget import answers_limit
from annotation.budget.words import epsilon_words
from annotation.choices.label_types.several import ChooseSeveral
from annotation.choices.policies import policy_hides_selection
from annotation.choices.rules import batch_stream_epsilon, update_epsilon
from annotation.gates.comparison import SYNTHETIC_RECORDS
from annotation.models import UNFINISHED, Arrival, Dataset, DatasetRole, DatasetState, Oracle, Project
from annotation.models.imports import OpeningDraft
from annotation.projects.services.drafts import PUBLIC
from learner.errors import ExtraMissing
from learner.models.planning import PlanSimulation
from learner.pools import records as pool_records
from learner.pools import selectors
from learner.simulation.estimates import PlannersEstimate, SimulatedCourse, course_of, simulation_of
from learner.simulation.plan_setups import FEWEST_RECORDS, default_records, setup_of, total_epsilon
from learner.simulation.selectors import End, PlanForecast, Purse, plan_forecast, secret_rates
from learner.simulation.services import fingerprint_of
from learner.simulation.setup import Setup
from privacy.accounting.event import Event
from privacy.accounting.events import GateWindowEvent
from privacy.ledger.rules import adjacency_of
from privacy.ledger.selectors import as_it_counts
from privacy.wording import Message, as_message, as_plural_message, joined_messages

# More uploads than this are not counted one by one.
MOST_COUNTED: Final = 300
# Prices of so many coming models are named.
MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Forecast:
    """Cost and use of what a project still does, the same on every page that shows any of it.

    Attributes
    ----------
    walk : PlanForecast or None
        Coming rounds and models; None of a stream, which pays once, and while work runs.
    records : int
        Records that are counted with; `is_planned` where they are not there yet.
    uploads : int or None
        Further uploads that the gate takes; None without a gate, and where all uploads share one price.
    questions : int
        Questions of the next round.
    training, whole : float or None
        Epsilon of the next training, and of a whole stream.
    """

    walk: PlanForecast | None
    records: int
    is_planned: bool
    uploads: int | None
    questions: int
    training: float
    whole: float | None
    label_limit: int | None
    course: SimulatedCourse
    setup: Setup | None
    simulation: PlanSimulation | None
    public: str
    # Of hidden windows one price covers choosing and learning.
    one_price: bool = False
    passed_of: int | None = None
    choosing_of_stream: float = 0.0

    @property
    def releases(self) -> int | None:
        """Models that still come and are paid for; None of a stream, and while work runs."""
        return None if self.walk is None else self.walk.releases

    @property
    def rounds(self) -> int | None:
        return None if self.walk is None else self.walk.rounds

    @property
    def labels(self) -> int:
        """Labels of the last model that is foreseen."""
        if self.walk is not None and self.walk.labels:
            return self.walk.labels[-1]
        counts = self.setup.label_counts if self.setup is not None and self.whole is not None else []
        return counts[-1] if counts else 0

    @property
    def choosing(self) -> float:
        return self.choosing_of_stream if self.walk is None else self.walk.choosing

    @property
    def expected(self) -> PlannersEstimate | None:
        """Accuracy of the last model that is foreseen, where about so many labels were simulated."""
        return self.course.at(self.labels)

    @property
    def is_simulating(self) -> bool:
        job = None if self.simulation is None else self.simulation.job
        return job is not None and job.state in UNFINISHED

    @property
    def can_be_simulated(self) -> bool:
        return self.setup is not None and self.setup.can_be_simulated

    @property
    def sentence(self) -> Message:
        if self.whole is not None:
            return as_message(
                "A stream pays once, ε {epsilon}: every further model is free.",
                epsilon=epsilon_words(self.whole),
            )
        if self.walk is None:
            return as_message("Counted again when the work that runs is done.")
        parts = [self._models(self.walk), *self._needed(self.walk), _ENDS[self.walk.end]]
        if self.is_planned and self.walk.releases:
            parts.append(as_message("Planned for {records} records.", records=self.records))
        return joined_messages(" ", parts)

    @staticmethod
    def _needed(walk: PlanForecast) -> list[Message]:
        if not walk.labels:
            return []
        return [
            as_plural_message(
                "The next one learns from about {n} label.",
                "The next one learns from about {n} labels.",
                n=walk.labels[0],
            )
        ]

    def _models(self, walk: PlanForecast) -> Message:
        if not walk.releases:
            return as_message("No further model is planned.")
        named = ", ".join(epsilon_words(cost) for cost in walk.costs[:MOST_NAMED])
        more = ", ..." if walk.releases > MOST_NAMED else ""
        return as_plural_message(
            "{n} more model fits: ε {costs}.",
            "{n} more models fit: ε {costs}.",
            n=walk.releases,
            costs=named + more,
        )


_ENDS: Final = {
    End.BUDGET: as_message("The budget is too small for another one."),
    End.PLAN: as_message("Then the plan is complete."),
    End.POOL: as_message("Then nothing is left to ask."),
    End.FAR: as_message("More may follow."),
}


def forecast_of(project: Project, *, records: int | None = None, draft: OpeningDraft | None = None) -> Forecast:
    """Return the forecast of a project as it is, or of so many further records in place of those that are there."""
    counted = _counted(project)
    planned = records
    if planned is None and not counted and not _has_asked(project):
        planned = max(FEWEST_RECORDS, default_records(project))
    setup = _setup(project, planned or counted)
    public = public_file(project, draft)
    simulation = _simulation(project, setup, draft, public, typed=records is not None)
    stream, crowd = project.arrival == Arrival.STREAM, project.oracle == Oracle.CROWD
    whole = batch_stream_epsilon(project.settings) if stream else None
    return Forecast(
        walk=plan_forecast(project, records=planned),
        records=planned or counted,
        is_planned=planned is not None,
        uploads=_payable_uploads(project) if crowd else None,
        questions=_questions(project, planned or counted),
        training=_next_training(project),
        whole=whole,
        label_limit=answers_limit(project),
        course=course_of(None if simulation is None else simulation.result),
        setup=setup,
        simulation=simulation,
        public=public,
        one_price=policy_hides_selection(project.settings),
        passed_of=SYNTHETIC_RECORDS if crowd and planned is not None else None,
        choosing_of_stream=0.0 if whole is None else max(0.0, whole - update_epsilon(project.settings)),
    )


def _counted(project: Project) -> int:
    """Count the records that questions come from: behind a gate the texts that passed."""
    return (
        pool_records.gate_output(project).count() if project.oracle == Oracle.CROWD else pool_records.pool_size(project)
    )


def _has_asked(project: Project) -> bool:
    counts = selectors.question_counts(project)
    return bool(counts.done or counts.open)


def _setup(project: Project, records: int) -> Setup | None:
    try:
        return setup_of(project, max(FEWEST_RECORDS, records))
    except ExtraMissing:
        return None


def public_file(project: Project, draft: OpeningDraft | None = None) -> str:
    """Name the labelled public file that a simulation runs on; empty without one, and where a record has several."""
    if project.labels_per_record > 1 and project.question_kind == ChooseSeveral.name:
        return ""
    if draft is not None:
        roles = draft.files.get(PUBLIC, {}).get("roles", {})
        return f"draft {draft.pk} {draft.public.name}" if "label" in roles.values() else ""
    sets = Dataset.objects.filter(project=project, role=DatasetRole.PUBLIC_TEST, state=DatasetState.READY)
    labelled = sets.filter(records__label__isnull=False).distinct().order_by("pk").values_list("pk", flat=True)
    return f"project {project.pk} {list(labelled)}" if labelled else ""


def _simulation(
    project: Project, setup: Setup | None, draft: OpeningDraft | None, public: str, *, typed: bool
) -> PlanSimulation | None:
    if setup is None:
        return None
    wanted = PlanSimulation.objects.filter(fingerprint=fingerprint_of(setup, total_epsilon(project), public))
    found = wanted.select_related("job").first()
    if found is not None or typed:
        return found
    return simulation_of(project, draft)


def _questions(project: Project, counted: int) -> int:
    if not pool_records.labels_in_secret(project):
        return project.round_size
    block = pool_records.next_block(project) or pool_records.n_blocks(project)
    return round(counted * secret_rates(project)[block - 1])


def _next_training(project: Project) -> float:
    if project.arrival == Arrival.STREAM:
        return update_epsilon(project.settings)
    account = selectors.training_account(project)
    return as_it_counts(account, selectors.training_event(project).cost(adjacency=adjacency_of(account))).epsilon


def _payable_uploads(project: Project) -> int | None:
    event, purse = charges.coming_run(project), Purse(project.pool_account)
    if isinstance(event, GateWindowEvent) and purse.covers(event):
        return None
    return _covered(purse, event)


def _covered(purse: Purse, event: Event) -> int:
    for number in range(MOST_COUNTED):
        if not purse.covers(event):
            return number
        purse.pay(event)
    return MOST_COUNTED
