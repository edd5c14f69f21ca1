"""Setups of the simulations of a project's plan."""

from dataclasses import replace
from typing import Any

from annotation.choices.catalogue import chosen_of
from annotation.choices.gates import gate_from
from annotation.choices.label_types.learning import training_epsilon
from annotation.choices.policies import policy_choice_of
from annotation.choices.selections import selection_rates
from annotation.gates.comparison import synthetic_log
from annotation.models import Arrival, Oracle, Project
from learner.pools import selectors
from learner.pools.configuration import (
    answers_event_of,
    featurizer_of,
    learned_classes,
    policy_of,
    strategy_choice_of,
    training_adjacency,
)
from learner.simulation.selectors import plan_forecast
from learner.simulation.setup import MOST_RELEASES, Setup, Training
from privacy.choices import Kind
from privacy.gate.planning import passing
from privacy.ledger.selectors import guarantee

# How many records may be planned for.
FEWEST_RECORDS, MOST_RECORDS = 20, 10**8


def setup_of(project: Project, records: int) -> Setup:
    """Return what a simulation of the project needs; as many releases as can be paid, up to those it looks at."""
    stream = project.arrival == Arrival.STREAM
    chosen = strategy_choice_of(project)
    trained = chosen_of(Kind.ESTIMATOR, project.settings)
    batch = _batch_of(project) if stream else 0
    setup = Setup(
        n_classes=len(learned_classes(project)),
        dimension=featurizer_of(project).dimension,
        records=records,
        estimator=project.estimator,
        training=Training(_meant_price(project), training_adjacency(project)),
        selection=chosen.name,
        parameters=chosen.document(),
        labels_per_release=project.updates_per_release * batch if stream else project.labels_per_release,
        releases=MOST_RELEASES,
        round_size=project.round_size,
        stream=stream,
        policy=_policy_of(project) if stream else {},
        askable=round(selection_rates(project.settings)[0] * records) if stream else None,
        declared={} if trained is None else trained.of(project.settings).document(),
        answers=answers.to_json() if (answers := answers_event_of(project)) else {},
        labels_per_record=project.labels_per_record,
    )
    return _with_payable_releases(project, setup)


def default_records(project: Project) -> int:
    """Return how many records to plan for where nobody said: what passes of a made-up log, or a few thousand."""
    if project.oracle == Oracle.CROWD:
        return max(1, round(passing(synthetic_log(), gate_from(project.settings)).texts))
    return 2000


def _policy_of(project: Project) -> dict[str, Any]:
    chosen = policy_choice_of(project.settings)
    asked = {"windows_ahead": project.windows_ahead, "question_kind": project.question_kind}
    return {**chosen.document(), **asked}


def total_epsilon(project: Project) -> float:
    """Return the limit that choosing and training share."""
    return guarantee(selectors.training_account(project)).epsilon_limit


def _meant_price(project: Project) -> float:
    """Return what one training is meant to cost; 0 where answers or steps are what is paid for."""
    return training_epsilon(project.settings) or 0.0


def _batch_of(project: Project) -> int:
    """Return the answers of one update of a stream, about; what a hidden one is divided by."""
    batches = policy_of(project)
    return batches.denominator or batches.asked_at(selection_rates(project.settings)[0])


def _with_payable_releases(project: Project, setup: Setup) -> Setup:
    """Let a setup have the releases of the whole plan, so that it is the same whatever is spent."""
    whole = plan_forecast(project, records=setup.records, anew=True, most_releases=MOST_RELEASES)
    payable = MOST_RELEASES if whole is None else whole.releases
    found = replace(setup, releases=payable)
    return replace(setup, releases=min(payable, max(len(found.label_counts), 1))) if payable else found
