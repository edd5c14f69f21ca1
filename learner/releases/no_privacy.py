"""Estimates of the accuracy without privacy, as pages and cards say them."""

from collections.abc import Sequence

from annotation.models import Project
from learner.models import ModelRelease, TrainingRun
from learner.pools import selectors
from learner.pools.records import TrainedOn
from learner.releases.cards.accuracy import Expected
from learner.simulation.estimates import PlannersEstimate
from learner.simulation.forecast import expected_course
from privacy.wording import as_message, as_plural_message


def estimate_said(estimate: PlannersEstimate | None, *, may_plan: bool, finds_spans: bool = False) -> str:
    if estimate is None:
        if not may_plan:
            return as_message("No simulation for these settings yet.")
        return as_message("No simulation for these settings yet; run one on the plan page, for free.")
    digits = as_message("public digits")
    made_up = as_message("synthetic data")
    words = {"public": as_message("the public file"), "digits": digits, "made_up": made_up}
    return as_plural_message(
        "Simulated on {word_data}, {n} label: {word_measure} {clear} without privacy, {private} with these settings.",
        "Simulated on {word_data}, {n} labels: {word_measure} {clear} without privacy, {private} with these settings.",
        word_data=words[estimate.data],
        word_measure=as_message("Entity F1") if finds_spans else as_message("Accuracy"),
        n=estimate.labels,
        clear=f"{estimate.accuracy:.1%}",
        private=f"{estimate.with_privacy:.1%}",
    )


def estimate_of_run(run: TrainingRun) -> PlannersEstimate | None:
    return expected_course(run.project).at(selectors.labels_told(run))


def with_estimates(releases: Sequence[ModelRelease]) -> list[tuple[ModelRelease, TrainedOn, PlannersEstimate | None]]:
    if not releases:
        return []
    course = expected_course(releases[0].project)
    used = selectors.trained_on_each([release.training_run for release in releases])
    return [
        (release, each, course.at(selectors.labels_told(release.training_run, each)))
        for release, each in zip(releases, used, strict=True)
    ]


# By the data of a simulation, in the English of a card.
DATA_ON_CARDS = {
    "public": "the public file",
    "digits": "public digits",
    "made_up": "synthetic data",
}


def expected_of(project: Project) -> Expected | None:
    """Return the forecast as a card prints it; it rests on public data alone. None where nothing was simulated."""
    points = expected_course(project).points
    if not points:
        return None
    return {
        "data": DATA_ON_CARDS[points[0].data],
        "constant": points[0].constant,
        "version_0": points[0].version_0,
        "points": [
            {
                "labels": point.labels,
                "with_privacy": point.with_privacy,
                "low": point.low,
                "high": point.high,
                "no_privacy": point.accuracy,
            }
            for point in points
        ],
    }
