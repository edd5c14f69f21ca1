"""Answers of a transcript held against the event that its entry in the ledger was charged for."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dpal.errors import NotGenuine
from dpal.recompute.transcript import Transcript

# Share by which numbers may differ that were computed in another order.
ROUNDING = 1e-9
ODDS_UNIT = 2**32
WRAPPERS = {"secret_sample": "inner", "secret_block": "inner", "label_training": "inner", "stream": "update"}


class Paid(NamedTuple):
    """Answers to a query that an event pays for: how far a record moves one, its noise, and how many there may be.

    `drawn` answers have the scale of an exponential mechanism's scores: the larger, the less noise.
    """

    sensitivity: float
    scale: float
    times: float
    drawn: bool = False


def refuse_uncharged(transcript: Transcript, privacy: Mapping[str, Any]) -> None:
    """Refuse answers with less noise than was charged, to another sensitivity, or more of them.

    Parameters
    ----------
    transcript : Transcript
        Of a release, with the entry that paid for it.
    privacy : mapping
        Content of privacy.json, which lists the entries of the release.

    Raises
    ------
    NotGenuine
        If an answer is not paid for, or the entry is not among those of the release.
    """
    event = _charged_event(transcript, privacy)
    paid, counts = _paid_by(event), Counter(query for query, *_ in transcript.answers)
    for query, sensitivity, scale, answer in transcript.answers:
        if query == "seed" and _is_chance(answer) and not sensitivity and not scale:
            continue
        terms = paid.get(query)
        if terms is None or counts[query] > terms.times:
            raise NotGenuine(f"The transcript holds more answers to {query!r} than its entry in the ledger paid for.")
        if not math.isclose(sensitivity, terms.sensitivity, rel_tol=ROUNDING):
            raise NotGenuine(f"The answer to {query!r} has another sensitivity than its entry in the ledger paid for.")
        noise, least = (terms.scale, scale) if terms.drawn else (scale, terms.scale)
        if not noise >= least * (1 - ROUNDING):
            raise NotGenuine(f"The answer to {query!r} has less noise than its entry in the ledger paid for.")


def _charged_event(transcript: Transcript, privacy: Mapping[str, Any]) -> Mapping[str, Any] | None:
    charged = transcript.charged
    if charged is None:
        return None
    kinds = {entry["id"]: entry["kind"] for entry in privacy["entries"]}
    if kinds.get(charged["entry"]) != charged["event"]["kind"]:
        raise NotGenuine("The entry that paid for the transcript is not among those of its release.")
    event: Mapping[str, Any] = charged["event"]
    while event["kind"] in WRAPPERS:
        event = event[WRAPPERS[event["kind"]]]
    return event


def _is_chance(answer: Any) -> bool:
    return answer.shape == (4,) and bool(((answer >= 0) & (answer < 2**32) & (answer == np.rint(answer))).all())


def _paid_by(event: Mapping[str, Any] | None) -> dict[str, Paid]:
    """Return what an event pays for; without one, answers that are declared no secret."""
    if event is None:
        return {"responses": Paid(1.0, 0.0, 1)}
    match event["kind"]:
        case "picked_fit":
            drawn = event["noise"] == "exponential"
            moved = 1.0 if drawn else math.sqrt(event["candidates"] - 1)
            return {**_paid_by(event["inner"]), "right_answers": Paid(moved, event["scale"], 1, drawn)}
        case "measured_fit":
            moved = math.sqrt(2) * event["spans_per_record"]
            return {**_paid_by(event["inner"]), "span_counts": Paid(moved, event["scale"], 1)}
        case "sums":
            return _paid_sums(event, 1)
        case "running_sums":
            # Of an epoch; those of the next one are of other records.
            return _paid_sums(event["sums"], math.inf)
        case "gradient_steps" | "centered_gradient_steps" | "span_steps":
            steps = {
                "count": Paid(1.0, event["count_sigma"], 1),
                "gradient": Paid(event["norm_bound"] * event["residual_bound"], event["sigma"], event["steps"]),
            }
            center = {"row_sum": Paid(event["norm_bound"], event["center_sigma"], 1)} if "center_sigma" in event else {}
            return steps | center
        case "objective_perturbation":
            moved = 2 if event["adjacency"] == "replace" else 1
            scale = moved * event["gradient_bound"] / event["epsilon_prime"]
            return {"minimiser": Paid(event["gradient_bound"], scale, event["n_models"])}
        case "output_perturbation":
            return {"minimiser": Paid(event["gradient_bound"], event["noise_scale"], event["n_models"])}
        case "randomized_answers":
            # Its odds have as many parts for every other class; the logarithm is the loss of a response.
            return {"responses": Paid(1.0, 1 / math.log(event["odds"] / ODDS_UNIT), 1)}
        case other:
            raise NotGenuine(f"This version does not know what the event {other!r} pays for: use a newer one.")


def _paid_sums(event: Mapping[str, Any], times: float) -> dict[str, Paid]:
    bound = event["norm_bound"]
    paid = {"class_sums": Paid(bound * math.sqrt(event["labels_per_record"]), event["class_sigma"], times)}
    if event["moment_sigma"]:
        paid["moments"] = Paid(bound**2, event["moment_sigma"], times)
    return paid
