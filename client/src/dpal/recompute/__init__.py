"""Weights recomputed from a transcript, by the very programs that made them on the site."""

from collections.abc import Callable, Mapping
from typing import Any

from dpal.errors import NotGenuine
from dpal.recompute.label_sets import label_sets
from dpal.recompute.minimisers import minimisers
from dpal.recompute.running_sums import running_sums
from dpal.recompute.softmax_steps import softmax_steps
from dpal.recompute.sums import sums
from dpal.recompute.transcript import Recorded, Session, Tell, Transcript, Weights

Program = Callable[[Mapping[str, Any], Session, Tell], Weights]
PROGRAMS: dict[str, Program] = {
    "label_sets": label_sets,
    "minimisers": minimisers,
    "running_sums": running_sums,
    "softmax_steps": softmax_steps,
    "sums": sums,
}


def recompute(transcript: Transcript) -> Weights:
    """Return the weights that the answers of a transcript lead to.

    Raises
    ------
    NotGenuine
        If the program is unknown, or the answers are not those that it asks for.
    """
    program = PROGRAMS.get(transcript.program)
    if program is None:
        raise NotGenuine(f"This version knows no program {transcript.program!r}: use a newer one.")
    session = Recorded(transcript.answers)
    weights = program(transcript.parameters, session, lambda done, total: None)
    session.finish()
    return weights
