"""Transcripts of releases, and the lines about them in privacy.json."""

from dataclasses import replace
from typing import Any

import numpy as np

from dpal.recompute.transcript import Transcript
from learner.linear_model import LinearModel
from privacy.accounting.event import Event


def transcript_of(model: LinearModel) -> Transcript:
    """Return a transcript that leads to a model: a start, and no answer about it."""
    start = {"coef": model.coef, "intercept": model.intercept, "multiclass": model.multiclass}
    public = {"rows": np.zeros((0, model.dimension)), "priors": [start]}
    return Transcript("channel", public, [("responses", 1.0, 0.0, np.zeros((0, len(model.classes))))])


def charged(transcript: Transcript, event: Event) -> tuple[Transcript, dict[str, Any]]:
    """Return the transcript of a release whose entry was charged for `event`, and what privacy.json says of it."""
    said = {"entry": "pool #2", "event": event.to_json()}
    return replace(transcript, charged=said), {"entries": [{"id": "pool #2", "kind": event.kind}]}
