"""The section of a card on accuracy: the model beside all that costs nothing."""

from typing import TypedDict

from learner.releases.cards.words import Telling, markdown_table, plain
from privacy.wording import as_message
from privacy.wording import gettext_noop as _


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
    _("data set"),
    _("examples"),
    _("accuracy (95 % interval)"),
    _("always one answer"),
    _("words about classes alone"),
    _("macro-F1"),
    _("calibration error"),
)
NO_WORDS = _("none")
NO_PRIVACY = _("No privacy:")


def accuracy_section(metrics: list[Metric], *, estimate: str = "", tell: Telling = str) -> list[str]:
    if not metrics:
        return [tell(_("No public test set was given, and measuring on private records would cost privacy."))]
    rows = [
        (
            metric["dataset"],
            str(metric["examples"]),
            tell(
                as_message(
                    "{accuracy:.4f} ({low:.4f} to {high:.4f})",
                    accuracy=metric["accuracy"],
                    low=metric["interval"][0],
                    high=metric["interval"][1],
                )
            ),
            tell(_share(metric["constant"])),
            tell(NO_WORDS if metric["version_0"] is None else _share(metric["version_0"])),
            tell(_share(metric["macro_f1"])),
            tell(_share(metric["calibration_error"])),
        )
        for metric in metrics
    ]
    beneath = ["", f"{tell(NO_PRIVACY)} {plain(tell(estimate))}"] if estimate else []
    return [*markdown_table(HEAD, rows, tell=tell), *beneath, *_worthless(metrics, tell)]


def _share(value: float) -> str:
    return as_message("{value:.4f}", value=value)


def _worthless(metrics: list[Metric], tell: Telling) -> list[str]:
    """Say it where the model is no better than what costs nothing, over all test sets together."""
    right, constant = (
        sum(metric[name] * metric["examples"] for metric in metrics) for name in ("accuracy", "constant")
    )
    if right <= constant:
        said = _("On these examples the model is right no more often than always giving the likeliest answer.")
        return ["", f"**{tell(said)}**"]
    described = [(metric["version_0"], metric["examples"]) for metric in metrics if metric["version_0"] is not None]
    if described and right <= sum(share * examples for share, examples in described):
        said = _("On these examples the model is right no more often than the words about the classes alone.")
        return ["", f"**{tell(said)}**"]
    return []
