"""The section of a card on accuracy: the model beside all that costs nothing."""

from typing import NotRequired, TypedDict

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
    # Of spans: entity F1 of all types and of each.
    types: NotRequired[list["TypeScore"]]


class TypeScore(TypedDict):
    """Entity F1 of a type with its 95 % interval; None where the examples are too few to say."""

    name: str
    spans: int
    value: float | None
    low: float | None
    high: float | None


class ExpectedPoint(TypedDict):
    """Accuracy after so many labels in a simulation on data outside the project; shares."""

    labels: int
    with_privacy: float
    low: float
    high: float
    no_privacy: float


class Expected(TypedDict):
    """Forecast accuracy of the project's models and of what costs nothing."""

    data: str
    constant: float | None
    version_0: float | None
    points: list[ExpectedPoint]


EXPECTED_HEAD = ("labels", "expected {measure} (worst to best of the simulated projects)", "no privacy")
HEAD = (
    "data set",
    "examples",
    "{measure} (95 % interval)",
    "always one answer",
    "words about classes alone",
    "macro-F1",
    "calibration error",
)


def accuracy_section(
    metrics: list[Metric], *, expected: Expected | None = None, held_out: bool = False, measure: str = "accuracy"
) -> list[str]:
    beneath = [] if expected is None else _expected_section(expected, measure)
    if not metrics and held_out:
        return ["No public test set was given.", *beneath]
    if not metrics:
        return ["No public test set was given, and measuring on private records would cost privacy.", *beneath]
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
    return [*markdown_table(_head(HEAD, measure), rows), *_worthless(metrics), *beneath]


def types_section(metrics: list[Metric]) -> list[str]:
    """Return entity F1 on each data set, where spans were measured."""
    lines: list[str] = []
    for metric in metrics:
        rows = [(one["name"], str(one["spans"]), type_words(one)) for one in metric.get("types", ())]
        if rows:
            lines += ["", f"Entity F1 on {plain(metric['dataset'])}:", ""]
            lines += markdown_table(("type", "spans", "F1 (95 % interval)"), rows)
    return lines


def type_words(one: TypeScore) -> str:
    if one["value"] is None or one["low"] is None or one["high"] is None:
        return "too few to say"
    return f"{one['value']:.4f} ({one['low']:.4f} to {one['high']:.4f})"


def _head(head: tuple[str, ...], measure: str) -> tuple[str, ...]:
    return tuple(name.format(measure=measure) for name in head)


def _expected_section(expected: Expected, measure: str) -> list[str]:
    free = [("always one answer", expected["constant"]), ("words about classes alone", expected["version_0"])]
    said = "".join(f"; {name} {share:.1%}" for name, share in free if share is not None)
    rows = [
        (
            str(point["labels"]),
            f"{point['with_privacy']:.1%} ({point['low']:.1%} to {point['high']:.1%})",
            f"{point['no_privacy']:.1%}",
        )
        for point in expected["points"]
    ]
    return [
        "",
        f"Expected, simulated on {plain(expected['data'])}{said}:",
        "",
        *markdown_table(_head(EXPECTED_HEAD, measure), rows),
    ]


def _share(value: float) -> str:
    return f"{value:.4f}"


def _worthless(metrics: list[Metric]) -> list[str]:
    """Say it where the model is no better than what costs nothing, over all test sets together."""
    right, constant = (
        sum(metric[name] * metric["examples"] for metric in metrics) for name in ("accuracy", "constant")
    )
    if right <= constant:
        said = "On these examples the model does no better than always giving the likeliest answer."
        return ["", f"**{said}**"]
    described = [(metric["version_0"], metric["examples"]) for metric in metrics if metric["version_0"] is not None]
    if described and right <= sum(share * examples for share, examples in described):
        said = "On these examples the model does no better than the words about the classes alone."
        return ["", f"**{said}**"]
    return []
