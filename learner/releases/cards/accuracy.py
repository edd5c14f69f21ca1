"""The section of a card on accuracy: the model beside all that costs nothing."""

from typing import TypedDict

from learner.releases.cards.words import markdown_table, plain


class Metric(TypedDict):
    dataset: str
    examples: int
    accuracy: float
    interval: tuple[float, float]
    constant: float
    version_0: float | None
    macro_f1: float
    calibration_error: float


HEAD = (
    "data set",
    "examples",
    "accuracy (95 % interval)",
    "always one answer",
    "words about classes alone",
    "macro-F1",
    "calibration error",
)


def accuracy_section(metrics: list[Metric], *, estimate: str = "") -> list[str]:
    if not metrics:
        return ["No public test set was given, and measuring on private records would cost privacy."]
    rows = [
        (
            metric["dataset"],
            str(metric["examples"]),
            f"{metric['accuracy']:.4f} ({metric['interval'][0]:.4f} to {metric['interval'][1]:.4f})",
            _share(metric["constant"]),
            "none" if metric["version_0"] is None else _share(metric["version_0"]),
            _share(metric["macro_f1"]),
            _share(metric["calibration_error"]),
        )
        for metric in metrics
    ]
    beneath = ["", f"No privacy: {plain(estimate)}"] if estimate else []
    return [*markdown_table(HEAD, rows), *beneath, *_worthless(metrics)]


def _share(value: float) -> str:
    return f"{value:.4f}"


def _worthless(metrics: list[Metric]) -> list[str]:
    """Say it where the model is no better than what costs nothing, over all test sets together."""
    right, constant = (
        sum(metric[name] * metric["examples"] for metric in metrics) for name in ("accuracy", "constant")
    )
    if right <= constant:
        said = "On these examples the model is right no more often than always giving the likeliest answer."
        return ["", f"**{said}**"]
    described = [(metric["version_0"], metric["examples"]) for metric in metrics if metric["version_0"] is not None]
    if described and right <= sum(share * examples for share, examples in described):
        said = "On these examples the model is right no more often than the words about the classes alone."
        return ["", f"**{said}**"]
    return []
