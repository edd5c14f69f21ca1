"""One sentence at each step of a new project: who is protected from whom, and what it costs."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from annotation.budget.words import delta_words, epsilon_words
from annotation.choices.gates import first_event
from annotation.choices.label_types.learning import chosen_estimator
from annotation.choices.presets import Preset
from annotation.choices.randomizers import ANNOTATOR, answers_unit, randomizes
from annotation.choices.rules import batch_stream_epsilon
from annotation.choices.selections import asks_in_secret, selection_choice
from annotation.models import Arrival, Oracle, PrivacyUnit


def who_is_protected(preset: Preset, unit: str | None, settings: Mapping[str, Any] | None = None) -> str:
    """Say who is protected from whom; `settings` over those of the preset say it of the answers."""
    if preset.oracle == Oracle.CROWD:
        if (unit or preset.defaults["privacy_unit"]) == PrivacyUnit.CONTRIBUTOR:
            records = _(
                "Each contributor, with all they gave, is protected from the annotators and from everybody who gets a "
                "model."
            )
        else:
            records = _(
                "Each record is protected from the annotators and from everybody who gets a model, but not all records "
                "of one person together."
            )
        return f"{records} {_answers_protected({**preset.defaults, **(settings or {})})}"
    if preset.defaults.get("arrival") == Arrival.STREAM:
        return _(
            "Each record is protected from everybody but the annotators and managers, who see it: from those who get a "
            "model, and from those who learn what was asked about and when."
        )
    return _(
        "Each record is protected from everybody but the annotators and managers, who see it: from all who get a model."
    )


def _answers_protected(settings: Mapping[str, Any]) -> str:
    unit = answers_unit(settings)
    if unit is None:
        return _("The answers are declared not to be secret, and nothing protects them.")
    if unit == ANNOTATOR:
        return _("All answers of one annotator together are protected from everybody who gets a model.")
    return _(
        "Each single answer, but not all answers of one annotator together, is protected from everybody who gets a "
        "model."
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
        cost = first_event(settings).cost()
        said = _(
            "Each upload pays the gate ε %(epsilon)s, δ %(delta)s once; ranking and asking about what passed is free."
        )
        if settings.get("gate_window") is not None:
            said = _("The first upload pays ε %(epsilon)s, δ %(delta)s for all; asking about what passed is free.")
        return said % {"epsilon": epsilon_words(cost.epsilon), "delta": delta_words(cost.delta)}
    if settings.get("arrival") == Arrival.STREAM:
        return _cost_of_everything(settings)
    if asks_in_secret(settings):
        return _("Choosing costs nothing by itself: nobody outside learns what was asked, which makes models cheaper.")
    choice = selection_choice(settings)
    if choice is not None and choice.by_chance:
        return _("Random choice costs nothing: it does not look at the records.")
    once = None if choice is None else choice.of(settings).series_epsilon
    if once is None:
        return _("Choosing is charged with every round of questions.")
    return _("ε %(epsilon)s is paid once for the whole series, and a little more with every round.") % {
        "epsilon": epsilon_words(once)
    }


def _cost_of_model(settings: Mapping[str, Any]) -> str:
    if settings.get("arrival") == Arrival.STREAM:
        return _cost_of_everything(settings)
    if settings["oracle"] == Oracle.CROWD and answers_unit(settings) is None:
        return _("Models cost nothing: they learn from what passed the gate and from answers that are no secret.")
    if settings["oracle"] == Oracle.CROWD and randomizes(settings):
        return _("All answers together cost ε %(epsilon)s, once; each model made of them is free.") % {
            "epsilon": epsilon_words(settings.get("answers_epsilon") or settings["labels_epsilon"])
        }
    trained = chosen_estimator(settings)
    choice = None if trained is None else trained.of(settings)
    if choice is None or choice.epsilon is None:
        return ""
    costs = {"epsilon": epsilon_words(choice.epsilon), "delta": delta_words(choice.delta)}
    if asks_in_secret(settings):
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
        whole = batch_stream_epsilon(settings)
        return _(
            "The stream pays once, ε %(whole)s, for any number of records and models; the limit is ε %(epsilon)s, "
            "δ %(delta)s."
        ) % (limits | {"whole": epsilon_words(whole)})
    if settings["oracle"] == Oracle.CROWD and answers_unit(settings) is None:
        return (
            _(
                "At most ε %(epsilon)s, δ %(delta)s is ever spent on the pool. Answers are declared not to be secret: "
                "models may show any of them."
            )
            % limits
        )
    if settings["oracle"] == Oracle.CROWD:
        return _(
            "At most ε %(epsilon)s, δ %(delta)s is ever spent on the pool, and ε %(labels)s on any one answer, against "
            "any other in its place."
        ) % (limits | {"labels": epsilon_words(settings["labels_epsilon"])})
    return _("At most ε %(epsilon)s, δ %(delta)s is ever spent on the pool, by questions and models together.") % limits
