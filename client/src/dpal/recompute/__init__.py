"""Weights recomputed from a transcript, by the very programs that made them on the site."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpal.errors import NotGenuine
from dpal.recompute.channel import channel
from dpal.recompute.charged import refuse_uncharged
from dpal.recompute.label_sets import label_sets
from dpal.recompute.pick import picked
from dpal.recompute.running_sums import running_sums
from dpal.recompute.softmax_steps import softmax_steps
from dpal.recompute.span_crf import span_crf
from dpal.recompute.sums import sums
from dpal.recompute.transcript import Recorded, Session, Tell, Transcript, Weights

# Other processors and libraries add in another order; what rounding so moves is far below this share of a weight.
ROUNDING = 1e-9
Program = Callable[[Mapping[str, Any], Session, Tell], Weights]


def minimisers(parameters: Mapping[str, Any], session: Session, tell: Tell) -> Weights:
    """Fold the constant column (`intercept_scaling`, 0 for none) into the intercepts of `n_models` noisy minimisers."""
    n_models: int = parameters["n_models"]
    found = []
    for place in range(n_models):
        found.append(session.ask("minimiser", place))
        tell(place + 1, n_models)
    stacked = np.stack(found)
    if not parameters["intercept_scaling"]:
        return Weights(stacked, np.zeros(n_models))
    return Weights(stacked[:, :-1], stacked[:, -1] * parameters["intercept_scaling"])


def _picked(parameters: Mapping[str, Any], session: Session, tell: Tell) -> Weights:
    fitted = PROGRAMS[parameters["program"]](parameters["fit"], session, tell)
    return picked(parameters, fitted, session)


def _measured(parameters: Mapping[str, Any], session: Session, tell: Tell) -> Weights:
    """Make the weights of another program; then their spans were counted, which changes nothing."""
    weights = PROGRAMS[parameters["program"]](parameters["fit"], session, tell)
    session.ask("span_counts", weights.coef)
    return weights


PROGRAMS: dict[str, Program] = {
    "channel": channel,
    "label_sets": label_sets,
    "measured": _measured,
    "minimisers": minimisers,
    "picked": _picked,
    "running_sums": running_sums,
    "softmax_steps": softmax_steps,
    "span_crf": span_crf,
    "sums": sums,
}


def recompute(transcript: Transcript) -> Weights:
    """Return the weights that the answers of a transcript lead to; `NotGenuine` if they are not what it asks for."""
    program = PROGRAMS.get(transcript.program)
    if program is None:
        raise NotGenuine(f"This version knows no program {transcript.program!r}: use a newer one.")
    session = Recorded(transcript.answers)
    weights = program(transcript.parameters, session, lambda done, total: None)
    session.finish()
    return weights


def recomputed(transcript: Mapping[str, Any], weights: Mapping[str, Any], privacy: Mapping[str, Any]) -> float:
    """Recompute the weights of a release and return how far they are from those it has: 0 where every bit is the same.

    The largest difference is a share of the largest weight, at most `ROUNDING`; `NotGenuine` if the transcript cannot
    be followed, holds answers that were not charged for the release of privacy.json, or leads to other weights.
    """
    try:
        made = Transcript.from_json(transcript)
        refuse_uncharged(made, privacy)
        found = recompute(made)
        coef = np.array(weights["coef"], dtype=np.float64).reshape(-1, weights["dimension"])
        intercept = np.array(weights["intercept"], dtype=np.float64)
        if (found.coef.shape, found.intercept.shape) != (coef.shape, intercept.shape):
            raise NotGenuine("The transcript leads to weights of another shape.")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise NotGenuine("The transcript cannot be followed to its end.") from error
    apart = max(np.abs(found.coef - coef).max(), np.abs(found.intercept - intercept).max())
    difference = float(apart / max(np.abs(coef).max(), np.abs(intercept).max(), 1e-300))
    if not difference <= ROUNDING:
        raise NotGenuine("The weights are not those that the transcript leads to: something else went into them.")
    return difference


def how_exactly(difference: float) -> str:
    """Say how far recomputed weights are from those of a release."""
    if difference == 0:
        return "bit for bit"
    return f"up to rounding on this machine (largest difference {difference:.1g} of the largest weight)"
