"""Forecast of a project: models that the budget still pays for, and how accurate they become."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from django.core.cache import cache
from django.db.models import Count, Max, Q

from annotation.budget import charges
from annotation.budget.label_budget import answers_limit, questions_left
from annotation.budget.words import epsilon_words
from annotation.choices.label_types.several import ChooseSeveral
from annotation.choices.policies import policy_hides_selection
from annotation.choices.rules import batch_stream_epsilon, update_epsilon
from annotation.gates.comparison import SYNTHETIC_RECORDS
from annotation.models import (
    UNFINISHED,
    Arrival,
    Dataset,
    DatasetRole,
    DatasetState,
    Oracle,
    Project,
    Query,
    QueryState,
)
from annotation.models.imports import OpeningDraft
from annotation.projects.services.drafts import PUBLIC, rows_to_come
from learner.errors import ExtraMissing
from learner.estimators.catalogue import why_not_compared
from learner.models import ModelRelease, TrainingRun
from learner.models.planning import PlanSimulation
from learner.pools import records as pool_records
from learner.pools import selectors
from learner.pools.configuration import featurizer_of
from learner.simulation.estimates import PlannersEstimate, SimulatedCourse, course_of, simulation_of
from learner.simulation.plan_setups import FEWEST_RECORDS, default_records, setup_of, total_epsilon
from learner.simulation.selectors import End, PlanForecast, Purse, plan_forecast, secret_rates
from learner.simulation.services import VERSION, fingerprint_of
from learner.simulation.setup import Setup
from privacy.accounting.event import Event
from privacy.accounting.events import GateWindowEvent
from privacy.ledger.models import BudgetAccount
from privacy.ledger.rules import adjacency_of
from privacy.ledger.selectors import as_it_counts
from privacy.wording import Message, as_message, as_plural_message, joined_messages

# More uploads than this are not counted one by one.
MOST_COUNTED: Final = 300
# Prices of so many coming models are named.
MOST_NAMED: Final = 3
# Written again before it is this old, or whenever an input differs.
KEPT_SECONDS: Final = 7 * 24 * 3600
# What the cache keeps of a forecast as it is.
PLAIN: Final = (
    "records",
    "is_planned",
    "uploads",
    "questions",
    "training",
    "whole",
    "label_limit",
    "public",
    "one_price",
    "passed_of",
    "choosing_of_stream",
)


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
    def not_compared(self) -> str:
        """Why releases are not compared with version 0; empty where they are."""
        return "" if self.setup is None else why_not_compared(self.setup.estimator)

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
    def public_is_short(self) -> bool:
        """Whether the public file has too few rows for the last model that is foreseen."""
        points = self.course.points
        return bool(points) and points[0].data == "public" and self.labels > points[-1].labels and not self.expected

    @property
    def is_simulating(self) -> bool:
        job = None if self.simulation is None else self.simulation.job
        return job is not None and job.state in UNFINISHED

    @property
    def can_be_simulated(self) -> bool:
        has_data = bool(self.public) or not self.finds_spans
        return self.setup is not None and self.setup.can_be_simulated and has_data

    @property
    def finds_spans(self) -> bool:
        """Whether accuracy is entity F1."""
        return self.setup is not None and self.setup.finds_spans

    @property
    def lacks_public(self) -> bool:
        """Whether no public file, or one with too few texts, keeps entity F1 from being expected."""
        tried = self.simulation is not None and self.simulation.result is not None
        return self.finds_spans and not self.course.points and (tried or not self.public)

    @property
    def sentence(self) -> Message:
        if self.whole is not None:
            return as_message(
                "A stream pays once, ε {epsilon}; further models are free.",
                epsilon=epsilon_words(self.whole),
            )
        if self.walk is None:
            return as_message("Updated when the running work is done.")
        if not self.walk.releases:
            return _NONE[self.walk.end]
        parts = [self._models(self.walk), self._needed(self.walk), _ENDS[self.walk.end]]
        if self.is_planned:
            parts.append(as_message("Planned for {records} records.", records=self.records))
        return joined_messages(" ", parts)

    @staticmethod
    def _needed(walk: PlanForecast) -> Message:
        return as_plural_message(
            "The next one learns from about {n} label.",
            "The next one learns from about {n} labels.",
            n=walk.labels[0],
        )

    @staticmethod
    def _models(walk: PlanForecast) -> Message:
        if not any(walk.costs):
            return as_plural_message(
                "{n} more model fits and costs nothing.", "{n} more models fit and cost nothing.", n=walk.releases
            )
        named = ", ".join(epsilon_words(cost) for cost in walk.costs[:MOST_NAMED])
        more = ", ..." if walk.releases > MOST_NAMED else ""
        return as_plural_message(
            "{n} more model fits: ε {costs}.",
            "{n} more models fit: ε {costs}.",
            n=walk.releases,
            costs=named + more,
        )


_ENDS: Final = {
    End.BUDGET: as_message("No further model: the budget is too small."),
    End.PLAN: as_message("Then the plan is complete."),
    End.BLOCKS: as_message("Then every block is used."),
    End.POOL: as_message("Then too few questions are left for another."),
    End.FAR: as_message("More may follow."),
}
# The whole sentence where no model comes.
_NONE: Final = {
    End.BUDGET: as_message("No further model: the budget is too small."),
    End.PLAN: as_message("No further model: the plan is complete."),
    End.BLOCKS: as_message("No further model: every block is used."),
    End.POOL: as_message("No further model by itself: too few questions are left."),
    End.FAR: as_message("More may follow."),
}


def forecast_of(project: Project, *, records: int | None = None, draft: OpeningDraft | None = None) -> Forecast:
    """Return the forecast of a project, kept until an input changes; or with so many records in place of its own."""
    if records is not None or draft is not None:
        return computed_forecast(project, records=records, draft=draft)
    key, digest = f"forecast {project.pk}", _inputs_digest(project)
    held = cache.get(key)
    if held is not None and held["digest"] == digest:
        return _forecast_from(held)
    made = computed_forecast(project)
    cache.set(key, {"digest": digest, **_as_kept(made)}, timeout=KEPT_SECONDS)
    return made


def _inputs_digest(project: Project) -> str:
    """Return a digest of all that a forecast is computed from; a keyed address keeps it apart from other projects'."""
    asked = Query.objects.filter(project=project)
    datasets = Dataset.objects.filter(project=project).order_by("pk")
    ids = [key for key in (project.pool_account_id, project.labels_account_id) if key is not None]
    accounts = BudgetAccount.objects.filter(pk__in=ids).order_by("pk")
    limits = ("epsilon_limit_nano", "rho_limit_nano", "delta_limit_atto", "delta_sum_limit_atto")
    facts = [
        VERSION,
        has_features(project),
        sorted(project.settings.items()),
        list(accounts.annotate(newest=Max("entries__sequence")).values_list("pk", "newest", *limits)),
        list(datasets.values_list("pk", "role", "state", "row_count")),
        asked.aggregate(
            n=Count("pk"),
            unasked=Count("pk", filter=Q(state=QueryState.UNASKED)),
            passed=Count("pk", filter=Q(gate_run__isnull=False)),
        ),
        selectors.question_counts(project),
        questions_left(project),
        selectors.round_facts(project),
        list(TrainingRun.objects.filter(project=project).order_by("version").values_list("version", "state", "block")),
        list(ModelRelease.objects.filter(project=project).order_by("version").values_list("version", "state")),
        PlanSimulation.objects.aggregate(
            newest=Max("pk"),
            done=Count("pk", filter=Q(result__isnull=False)),
            running=Count("pk", filter=Q(job__state__in=UNFINISHED)),
        ),
    ]
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()


def expected_course(project: Project) -> SimulatedCourse:
    """Return the accuracies of the forecast; none where what turns a record into numbers is not installed."""
    return forecast_of(project).course if has_features(project) else SimulatedCourse()


def has_features(project: Project) -> bool:
    """Say whether what turns a record into numbers is installed; an encoder may come and go."""
    try:
        featurizer_of(project)
    except ExtraMissing:
        return False
    return True


def _as_kept(forecast: Forecast) -> dict[str, Any]:
    """Return a forecast as plain values, which another version of the program reads as well."""
    return {
        "plain": {name: getattr(forecast, name) for name in PLAIN},
        "walk": None if forecast.walk is None else forecast.walk.as_json(),
        "setup": None if forecast.setup is None else forecast.setup.as_json(),
        "simulation": None if forecast.simulation is None else forecast.simulation.pk,
    }


def _forecast_from(held: dict[str, Any]) -> Forecast:
    simulation = None
    if held["simulation"] is not None:
        simulation = PlanSimulation.objects.select_related("job").filter(pk=held["simulation"]).first()
    return Forecast(
        walk=None if held["walk"] is None else PlanForecast.from_json(held["walk"]),
        course=course_of(None if simulation is None else simulation.result),
        setup=None if held["setup"] is None else Setup.from_json(held["setup"]),
        simulation=simulation,
        **held["plain"],
    )


def computed_forecast(project: Project, *, records: int | None = None, draft: OpeningDraft | None = None) -> Forecast:
    counted = _counted(project)
    planned = records
    if planned is None and not counted and not _has_asked(project):
        coming = 0 if draft is None else rows_to_come(draft)
        planned = max(FEWEST_RECORDS, coming or default_records(project))
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
        return f"draft {draft.pk} {draft.public.name} {_words(project)}" if "label" in roles.values() else ""
    sets = Dataset.objects.filter(project=project, role=DatasetRole.PUBLIC_TEST, state=DatasetState.READY)
    labelled = sets.filter(records__label__isnull=False).distinct().order_by("pk").values_list("pk", flat=True)
    return f"project {project.pk} {list(labelled)} {_words(project)}" if labelled else ""


def _words(project: Project) -> str:
    words = project.settings.get("class_descriptions") or ()
    return hashlib.sha256(json.dumps(list(words)).encode()).hexdigest()


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
