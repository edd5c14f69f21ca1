"""Purchases of a plan: payable rounds and releases, and the setup of its simulation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from annotation.budget import charges
from annotation.budget.label_budget import answers_limit
from annotation.choices.catalogue import chosen_of
from annotation.choices.gates import gate_from
from annotation.choices.label_types.learning import training_epsilon
from annotation.choices.policies import policy_choice_of, policy_hides_selection
from annotation.choices.rules import batch_stream_epsilon, update_epsilon
from annotation.choices.selections import selection_rates
from annotation.gates.comparison import SYNTHETIC_RECORDS, synthetic_log
from annotation.models import Arrival, Oracle, Project
from learner.pools import records as pools_records
from learner.pools import selectors
from learner.pools.configuration import (
    answers_event_of,
    featurizer_of,
    finding_of,
    learned_classes,
    policy_of,
    strategy_choice_of,
    training_adjacency,
)
from learner.simulation.selectors import Purse
from learner.simulation.setup import MOST_RELEASES, Setup, Training, series_epsilon, simulated_strategy
from privacy.accounting.event import Event
from privacy.accounting.events import GateWindowEvent
from privacy.choices import Kind
from privacy.gate.planning import passing
from privacy.ledger.rules import adjacency_of
from privacy.ledger.selectors import as_it_counts, guarantee

# More trainings than this are not counted one by one.
MOST_COUNTED = 300
# How many records may be planned for.
FEWEST_RECORDS, MOST_RECORDS = 20, 10**8


@dataclass(frozen=True, slots=True)
class Purchase:
    """What the accounts buy as they stand, if people answer all they are asked and agree."""

    records: int
    passed_of: int | None
    uploads: int | None
    releases: int
    rounds: int
    labels: int
    questions: int
    choosing: float
    training: float
    label_limit: int | None
    whole: float | None = None
    # Of hidden windows one price covers choosing and learning.
    one_price: bool = False


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


def purchase_of(project: Project, records: int) -> Purchase:
    passed_of = uploads = None
    if project.oracle == Oracle.CROWD:
        gate = gate_from(project.settings)
        passed_of = SYNTHETIC_RECORDS
        uploads = _payable_uploads(project)
        records = records or round(passing(synthetic_log(), gate).texts)
    setup = setup_of(project, records)
    counts = setup.label_counts
    labels = counts[-1] if counts else 0
    secret = bool(setup.block_rates)
    questions = round(records * setup.block_rates[0]) if secret else setup.round_size
    return Purchase(
        records=records,
        passed_of=passed_of,
        uploads=uploads,
        releases=_payable_releases(project, setup),
        rounds=len(counts) if secret else math.ceil(labels / max(1, setup.round_size)),
        labels=labels,
        questions=questions,
        choosing=_choosing(project, setup),
        training=_one_training(project),
        label_limit=answers_limit(project),
        whole=_whole_stream(project),
        one_price=policy_hides_selection(project.settings),
    )


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
    payable = min(MOST_RELEASES, _payable_releases(project, setup))
    found = replace(setup, releases=payable)
    return replace(setup, releases=min(payable, max(len(found.label_counts), 1))) if payable else found


def _payable_releases(project: Project, setup: Setup) -> int:
    """Count the trainings the account pays for after choosing; a stream pays once for any number."""
    if project.arrival == Arrival.STREAM:
        return MOST_COUNTED
    purse = Purse(selectors.training_account(project))
    if (finding := finding_of(project)) is not None:
        purse.pay(finding.event)
    planned = project.maximum_releases or MOST_COUNTED
    if setup.block_rates:
        events = pools_records.coming_events(project, range(1, pools_records.n_blocks(project) + 1), anew=True)
        return min(planned, _covered(purse, events))
    training = selectors.training_event(project)
    if answers_event_of(project) is not None:
        # Paid once, or paid already: all trainings are free then.
        most = max(1, setup.records // setup.labels_per_release)
        return min(planned, most) if purse.covers(training) else 0
    if _rounds_cost(project):
        left = guarantee(selectors.training_account(project)).epsilon_left
        cost = training.cost(adjacency="null").epsilon
        for releases in range(min(planned, MOST_RELEASES), 0, -1):
            if series_epsilon(replace(setup, releases=releases), simulated_strategy(setup)) + releases * cost <= left:
                return releases
        return 0
    return min(planned, _covered(purse, [training] * MOST_COUNTED))


def _covered(purse: Purse, events: Sequence[Event]) -> int:
    for number, event in enumerate(events):
        if not purse.covers(event):
            return number
        purse.pay(event)
    return len(events)


def _payable_uploads(project: Project) -> int | None:
    """Return how many further uploads the gate takes; None where one price is for all of them."""
    event, purse = charges.coming_run(project), Purse(project.pool_account)
    if isinstance(event, GateWindowEvent) and purse.covers(event):
        return None
    return _covered(purse, [event] * MOST_COUNTED)


def _choosing(project: Project, setup: Setup) -> float:
    if project.oracle == Oracle.CROWD:
        return 0.0
    if project.arrival == Arrival.STREAM:
        return max(0.0, batch_stream_epsilon(project.settings) - update_epsilon(project.settings))
    if setup.block_rates:
        return 0.0
    return series_epsilon(setup, simulated_strategy(setup)) if _rounds_cost(project) else 0.0


def _rounds_cost(project: Project) -> bool:
    """Say whether a round of the project's strategy costs the pool anything."""
    if project.oracle == Oracle.CROWD:
        return False
    event = strategy_choice_of(project).event(pool_size=max(2, project.round_size), picks=1)
    return event.cost(adjacency="null").epsilon > 0


def _whole_stream(project: Project) -> float | None:
    if project.arrival != Arrival.STREAM:
        return None
    return batch_stream_epsilon(project.settings)


def _one_training(project: Project) -> float:
    if project.arrival == Arrival.STREAM:
        return update_epsilon(project.settings)
    return as_it_counts(
        account := selectors.training_account(project),
        selectors.training_event(project).cost(adjacency=adjacency_of(account)),
    ).epsilon
