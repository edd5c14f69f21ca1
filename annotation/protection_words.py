"""One sentence at each step of a new project: who is protected from whom, and what it costs."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from annotation.amounts import delta_words, epsilon_words
from annotation.models import Arrival, Oracle, PrivacyUnit, Selection
from annotation.preset import Preset
from annotation.presets import gate_event, gate_from
from annotation.selection_rules import SCREENS, screen_series_event
from annotation.stream_rules import ONLINE_ESTIMATORS, batch_stream_epsilon, online_event


def who_is_protected(preset: Preset, unit: str | None) -> str:
    """Say who is protected from whom."""
    if preset.oracle == Oracle.CROWD:
        if (unit or preset.defaults["privacy_unit"]) == PrivacyUnit.CONTRIBUTOR:
            return _(
                "Each contributor, with all they gave, is protected from the annotators and from everybody who gets a "
                "model; each annotator's answers are protected from everybody who gets a model."
            )
        return _(
            "Each record is protected from the annotators and from everybody who gets a model, but not all records of "
            "one person together; each annotator's answers are protected from everybody who gets a model."
        )
    if preset.defaults.get("arrival") == Arrival.STREAM:
        return _(
            "Each record is protected from everybody but the annotators and managers, who see it: from those who get a "
            "model, and from those who learn what was asked about and when."
        )
    return _(
        "Each record is protected from everybody but the annotators and managers, who see it: from all who get a model."
    )


def what_it_costs(step: str, settings: Mapping[str, Any] | None) -> str:
    """Say what the settings of a step cost; `settings` is None where they break a rule."""
    if step == "task":
        return _(
            "The task costs nothing: name, classes, columns and bounds are public, so write down what you know without "
            "looking at the records."
        )
    if settings is None:
        return ""
    if step == "questions":
        return _cost_of_questions(settings)
    if step == "model":
        return _cost_of_model(settings)
    return _cost_of_everything(settings)


def _cost_of_questions(settings: Mapping[str, Any]) -> str:
    if settings["oracle"] == Oracle.CROWD:
        cost = gate_event(gate_from(settings), settings["gate_epsilon"]).cost()
        return _(
            "Each upload pays the gate ε %(epsilon)s, δ %(delta)s once; ranking and asking about what passed is free."
        ) % {"epsilon": epsilon_words(cost.epsilon), "delta": delta_words(cost.delta)}
    if settings.get("arrival") == Arrival.STREAM:
        return _cost_of_everything(settings)
    if settings["selection"] == Selection.SECRET_SAMPLE:
        return _("Choosing costs nothing by itself: nobody outside learns what was asked, which makes models cheaper.")
    if settings["selection"] == Selection.RANDOM:
        return _("Random choice costs nothing: it does not look at the records.")
    if settings["selection"] in SCREENS:
        cost = screen_series_event(settings).cost()
        return _("All looks at a record together cost ε %(epsilon)s, paid once.") % {
            "epsilon": epsilon_words(cost.epsilon)
        }
    return _("The scale ε %(epsilon)s is paid once for the whole series, and a little more with every round.") % {
        "epsilon": epsilon_words(settings["selection_epsilon"])
    }


def _cost_of_model(settings: Mapping[str, Any]) -> str:
    if settings.get("arrival") == Arrival.STREAM:
        return _cost_of_everything(settings)
    costs = {
        "epsilon": epsilon_words(settings["training_epsilon"]),
        "delta": delta_words(float(settings.get("training_delta") or 0.0)),
    }
    if settings["selection"] == Selection.SECRET_SAMPLE:
        return (
            _("A training costs ε %(epsilon)s, δ %(delta)s at most; the secret of who was asked makes most cheaper.")
            % costs
        )
    return _("Each model costs ε %(epsilon)s, δ %(delta)s, however many answers it learns from.") % costs


def _cost_of_everything(settings: Mapping[str, Any]) -> str:
    limits = {
        "epsilon": epsilon_words(settings["pool_epsilon"]),
        "delta": delta_words(settings["pool_delta"]),
    }
    if settings.get("arrival") == Arrival.STREAM:
        online = settings.get("estimator") in ONLINE_ESTIMATORS
        whole = online_event(settings).cost().epsilon if online else batch_stream_epsilon(settings)
        return _(
            "The stream pays once, ε %(whole)s, for any number of records and models; the limit is ε %(epsilon)s, "
            "δ %(delta)s."
        ) % (limits | {"whole": epsilon_words(whole)})
    if settings["oracle"] == Oracle.CROWD:
        return _(
            "At most ε %(epsilon)s, δ %(delta)s is ever spent on the pool, and ε %(labels)s on what the annotators "
            "answered."
        ) % (limits | {"labels": epsilon_words(settings["labels_epsilon"])})
    return _("At most ε %(epsilon)s, δ %(delta)s is ever spent on the pool, by questions and models together.") % limits
