"""What a card says of accuracy on public data: the model beside all that costs nothing."""

from typing import TypedDict

from learner.cards.words import markdown_table, plain


class Metric(TypedDict):
    """How the release does on one public test set."""

    dataset: str
    examples: int
    accuracy: float
    interval: tuple[float, float]
    constant: float
    version_0: float | None
    macro_f1: float
    calibration_error: float


def accuracy_section(metrics: list[Metric], *, estimate: str = "") -> list[str]:
    """Return the table of public test sets; a private one would have to be paid for.

    `estimate` says what a plan found without privacy, or that there is none.
    """
    if not metrics:
        return ["No public test set was given, and measuring on private records would cost privacy."]
    rows = [
        (
            metric["dataset"],
            str(metric["examples"]),
            f"{metric['accuracy']:.4f} ({metric['interval'][0]:.4f} to {metric['interval'][1]:.4f})",
            f"{metric['constant']:.4f}",
            "none" if metric["version_0"] is None else f"{metric['version_0']:.4f}",
            f"{metric['macro_f1']:.4f}",
            f"{metric['calibration_error']:.4f}",
        )
        for metric in metrics
    ]
    beside = ("always one answer", "words about classes alone")
    head = ("data set", "examples", "accuracy (95 % interval)", *beside, "macro-F1", "calibration error")
    beneath = ["", f"No privacy: {plain(estimate)}"] if estimate else []
    return [*markdown_table(head, rows), *beneath, *_worthless(metrics)]


def _worthless(metrics: list[Metric]) -> list[str]:
    """Say it where the model is no better than what costs nothing, over all test sets together."""
    right, constant = (
        sum(metric[name] * metric["examples"] for metric in metrics) for name in ("accuracy", "constant")
    )
    if right <= constant:
        return ["", "**On these examples the model is right no more often than always giving the likeliest answer.**"]
    described = [(metric["version_0"], metric["examples"]) for metric in metrics if metric["version_0"] is not None]
    if described and right <= sum(share * examples for share, examples in described):
        return ["", "**On these examples the model is right no more often than the words about the classes alone.**"]
    return []
