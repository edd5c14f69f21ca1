"""The rows of a plan as its page and its route show them: what each changes, what it costs, how it did."""

from typing import Any

from annotation.projects.forms.setting_names import setting_name
from annotation.projects.settings_words import setting_value
from learner.models.planning import PlanSimulation
from learner.planning.best import best_row
from learner.planning.rows import PlannedRows


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
