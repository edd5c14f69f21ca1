"""Rows of a plan, as data and as a table."""

import copy
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from annotation.choices.account_kind import DELTA_SHARE, filter_of
from annotation.choices.catalogue import chosen_of, default_of
from annotation.choices.configuration import frozen_settings
from annotation.choices.planned_settings import planned_settings
from annotation.choices.presets import broken_rules
from annotation.choices.randomizers import chosen_randomizer
from annotation.choices.services import configurations
from annotation.models import Project
from annotation.models.configurations import remember
from annotation.projects.forms.settings import setting_name, setting_value
from annotation.projects.services.configuring import limits_of
from annotation.selectors import is_charged
from learner.features.static_encoder import MOST_COLUMNS
from learner.models.planning import PlanSimulation
from learner.simulation.estimates import best_row
from learner.simulation.plan_setups import setup_of, total_epsilon, whole_price
from learner.simulation.setup import Setup
from learner.simulation.tried_settings import left_out, reads_encoder_columns, settings_to_try, untried
from privacy.accounting.units import ATTO, NANO
from privacy.choices import Kind, Plans
from privacy.ledger import terms
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import quota_of
from privacy.wording import as_message

MOST_ROWS: Final = 20
PRICES: Final[tuple[str, ...]] = ("training_epsilon", "training_delta")


@dataclass(frozen=True, slots=True)
class PlanRow:
    """Settings to try: what they change, what a simulation needs to know of them, and what they cost in all."""

    changes: Mapping[str, Any]
    setup: Setup
    price: float


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """What is simulated for a project and so many records."""

    setup: Setup
    epsilon: float
    rows: tuple[PlanRow, ...]
    why_not: str = ""
    left_out: str = ""


def planned_rows(project: Project, records: int) -> PlannedRows:
    """Return what is tried for a project; public numbers and the account's limit decide, and nothing is written."""
    setup, epsilon = setup_of(project, records), total_epsilon(project)
    why_not = untried(project.settings)
    if is_charged(project):
        why_not = as_message(
            "No other settings are tried: something was paid for, and the limit is planned for as a whole. What may "
            "still change is among the settings."
        )
    if why_not or not setup.can_be_simulated:
        return PlannedRows(setup, epsilon, (), why_not)
    rows = _rows(project, setup, records, epsilon)
    if len(rows) < 2:
        return PlannedRows(
            setup, epsilon, (), as_message("No other settings are tried: none has a proof and can be paid.")
        )
    rows = _on_one_pool(rows, falling=reads_encoder_columns(project.settings))
    whole = replace(setup, alternatives=tuple(row.setup for row in rows))
    return PlannedRows(whole, epsilon, rows, left_out=left_out(project.settings))


def imagined_project(project: Project, changes: Mapping[str, Any], *, kind: str | None = None) -> Project:
    """Return a project as it would be under changes; it is read and never saved."""
    document = configurations.document_of(configurations.settings_with(project, changes))
    imagined = copy.copy(project)
    # No row has a key that a digest makes.
    imagined.configuration_id = uuid.uuid5(uuid.NAMESPACE_OID, configurations.document_digest(document))
    remember(imagined.configuration_id, document)
    if kind not in (None, project.pool_account.filter):
        imagined.pool_account = _account_of(project.pool_account, str(kind))
    return imagined


def _rows(project: Project, setup: Setup, records: int, epsilon: float) -> tuple[PlanRow, ...]:
    shared = quota_of(project.pool_account) is not None
    fixed = frozen_settings(project).keys()
    try:
        rows = [PlanRow({}, setup, whole_price(project, setup))]
    except ValueError:
        # What stands cannot be paid for; its first work says so.
        return ()
    for wanted in settings_to_try(project.settings, setup, epsilon):
        row = _row(project, wanted, records=records, shared=shared)
        if row is None or fixed & row.changes.keys():
            continue
        if all(row.setup != known.setup for known in rows):
            rows.append(row)
    return tuple(rows[:MOST_ROWS])


def _row(project: Project, wanted: Mapping[str, Any], *, records: int, shared: bool) -> PlanRow | None:
    """Return a row whose training may cost all of the limit, None where the settings have no proof."""
    try:
        settings = configurations.settings_with(project, wanted) | limits_of(project)
        priced = dict(wanted) | _prices(settings, wanted, shared=shared)
        standing = project.settings
        changes = {name: value for name, value in priced.items() if standing.get(name, default_of(name)) != value}
        settings = configurations.settings_with(project, changes) | limits_of(project)
        if broken_rules(settings):
            return None
        imagined = imagined_project(project, changes, kind=None if shared else filter_of(settings))
        setup = setup_of(imagined, records)
        return PlanRow(changes, setup, whole_price(imagined, setup)) if setup.can_be_simulated else None
    except ValueError:
        return None


def _prices(settings: Mapping[str, Any], wanted: Mapping[str, Any], *, shared: bool) -> dict[str, Any]:
    """Return what a training may cost where that is not wanted; behind a gate, what all answers may."""
    if settings["oracle"] == "crowd":
        randomizer = chosen_randomizer(settings)
        chosen = None if randomizer is None else randomizer.of(settings)
        return dict(chosen.planned(settings)) if isinstance(chosen, Plans) else {}
    planned = planned_settings(settings, shared_limit=shared)
    estimator = chosen_of(Kind.ESTIMATOR, settings)
    used = {each.name for each in (() if estimator is None else estimator.parameters())}
    # A price of noise that has no delta is none.
    prices = {name: planned[name] for name in PRICES if name in planned and name not in wanted}
    return prices | ({} if "training_delta" in used else {"training_delta": 0.0})


def _on_one_pool(rows: Sequence[PlanRow], *, falling: bool) -> tuple[PlanRow, ...]:
    """Let all rows read the same made-up records, each the leading columns of as many as the widest has."""
    widest = min(MOST_COLUMNS, max(row.setup.dimension for row in rows))
    return tuple(replace(row, setup=replace(row.setup, drawn_in=widest, falling=falling)) for row in rows)


def _account_of(account: BudgetAccount, kind: str) -> BudgetAccount:
    """Return an account with the same limits that adds up in another way; it is read and never saved."""
    limits = terms.limits(
        filter=kind,
        epsilon_limit=Fraction(account.epsilon_limit_nano, NANO),
        delta_limit=Fraction(account.delta_limit_atto, ATTO),
        delta_share=DELTA_SHARE if kind == "zcdp" else None,
    )
    other = copy.copy(account)
    other.filter = kind
    other.delta_sum_limit_atto, other.rho_limit_nano = limits.delta_sum_limit_atto, limits.rho_limit_nano
    return other


def shown_rows(planned: PlannedRows, simulation: PlanSimulation | None) -> list[dict[str, Any]]:
    """Return the rows that were tried, empty before they were; the settings that stand are the first."""
    tried = _tried(simulation)
    best = best_row(tried)
    words = [
        [(setting_name(name), setting_value(name, value)) for name, value in row.changes.items()]
        for row in planned.rows
    ]
    return [
        {
            "number": number,
            "changes": dict(row.changes),
            "words": words[number],
            "settings": ", ".join(f"{name}: {value}" for name, value in words[number]),
            "price": row.price,
            "releases": row.setup.releases,
            "points": points,
            # A row may reach no release on some data, where the first one does.
            "cells": [(data, points.get(data)) for data in tried[0]],
            "labels": max((point["labels"] for point in points.values()), default=0),
            "better": number == best,
            "usable": number > 0,
        }
        for number, (row, points) in enumerate(zip(planned.rows, tried, strict=False))
    ]


def unreached(planned: PlannedRows, simulation: PlanSimulation | None) -> int:
    """Return how many rows a simulation that is done had no time for."""
    tried = _tried(simulation)
    return len(planned.rows) - len(tried) if tried else 0


def _tried(simulation: PlanSimulation | None) -> list[dict[str, Any]]:
    return [] if simulation is None or simulation.result is None else list(simulation.result.get("rows", []))
