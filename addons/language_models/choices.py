"""Language model as one more annotator of a crowd, and its limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django.conf import settings as site

from privacy.choices import Choice, Kind, Sound, parameter
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

FEWEST_ASKED: Final = 2


@dataclass(frozen=True)
class LanguageModelAnswers(Choice):
    """A language model answers as one more annotator; it is sent what strangers are shown, and nothing else."""

    kind: ClassVar[Kind] = Kind.MACHINE
    name: ClassVar[str] = "language_model"
    label: ClassVar[str] = _("a language model answers as an annotator")
    help: ClassVar[str] = _("It gives at most one answer a question, marked as a machine's.")
    sound: ClassVar[Sound] = Sound(
        oracles=("crowd",),
        arrivals=("pool",),
        data_kinds=("text",),
        why_not={
            "trusted": _("Language models see only texts that passed a gate."),
            "stream": _("Language models see only texts that passed a gate."),
        },
    )
    # It is shown gate output alone, so it may come and go.
    stays: ClassVar[bool] = False

    machine_endpoint: str = parameter(
        "",
        label=_("Endpoint"),
        help=_("One of the models named in LANGUAGE_MODELS."),
    )
    machine_requests: int = parameter(
        1000,
        at_least=1,
        at_most=1_000_000,
        label=_("Requests to it at most"),
        help=_("In the whole project, with retries; this bounds the cost."),
    )

    @classmethod
    def missing(cls) -> str:
        return "" if site.LANGUAGE_MODELS else _("No such endpoint is configured on this site.")

    def event(self, *args: Any, **circumstances: Any) -> None:
        """Return nothing: what it is sent passed the gate, which was paid for."""

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        broken: dict[str, str] = {}
        if self.machine_endpoint not in site.LANGUAGE_MODELS:
            broken["machine_endpoint"] = _("No such endpoint is configured on this site.")
        if (settings.get("overlap") or 1) < FEWEST_ASKED:
            broken["overlap"] = as_message("A model never answers alone: ask at least {fewest}.", fewest=FEWEST_ASKED)
        return broken


def machine_choice(settings: Mapping[str, Any]) -> LanguageModelAnswers | None:
    if settings.get(Kind.MACHINE.key) != LanguageModelAnswers.name:
        return None
    return LanguageModelAnswers.of(settings)
