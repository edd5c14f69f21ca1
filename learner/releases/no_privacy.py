"""Estimates of the accuracy without privacy, as pages and cards say them."""

from collections.abc import Sequence

from learner.models import ModelRelease, TrainingRun
from learner.pools import selectors
from learner.pools.records import TrainedOn
from learner.simulation.estimates import PlannersEstimate, simulated_course
from privacy.wording import as_message, as_plural_message


def estimate_said(estimate: PlannersEstimate | None, *, may_plan: bool) -> str:
    if estimate is None:
        if not may_plan:
            return as_message(
                "No simulation of these settings for about so many labels is at hand, so no estimate of no privacy "
                "stands here."
            )
        return as_message(
            "No simulation of these settings for about so many labels is at hand, so no estimate of no privacy stands "
            "here. The plan page makes one free of charge, and so does the command simulate on labelled public data."
        )
    digits = as_message("scikit-learn's handwritten digits")
    made_up = as_message("made-up clouds of the declared dimension")
    words = {"public": as_message("the public file"), "digits": digits, "made_up": made_up}
    return as_plural_message(
        "A planner's estimate, not of this project's labels: on {word_data}, with {n} label, a model without "
        "privacy was right of {clear} and these settings of {private}.",
        "A planner's estimate, not of this project's labels: on {word_data}, with {n} labels, a model without "
        "privacy was right of {clear} and these settings of {private}.",
        word_data=words[estimate.data],
        n=estimate.labels,
        clear=f"{estimate.accuracy:.1%}",
        private=f"{estimate.with_privacy:.1%}",
    )


def estimate_of_run(run: TrainingRun) -> PlannersEstimate | None:
    return simulated_course(run.project).at(selectors.labels_told(run))


def with_estimates(releases: Sequence[ModelRelease]) -> list[tuple[ModelRelease, TrainedOn, PlannersEstimate | None]]:
    if not releases:
        return []
    course = simulated_course(releases[0].project)
    used = selectors.trained_on_each([release.training_run for release in releases])
    return [
        (release, each, course.at(selectors.labels_told(release.training_run, each)))
        for release, each in zip(releases, used, strict=True)
    ]
