"""What a line of the statement says to a person: what was done, how, and what became of it."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from annotation.models import Dataset
from annotation.statement.amounts import delta_words, epsilon_words
from annotation.wording import localized
from privacy.accounting.events import Event, event_from_json
from privacy.accounting.units import atto_spendable, nano_spendable

# By mechanism; the names are those of the event's parameters, and of what is counted the number is behind `count_`.
HOW = {
    "k_anonymity_gate": gettext_lazy("texts held by at least %(k)s in a secret sample of rate %(sampling_rate)s"),
    "threshold_gate": gettext_lazy("texts whose noisy count reaches %(threshold)s"),
    "gate_window": ngettext_lazy(
        "%(window)s upload counted at a time; the first run paid for all of them",
        "at most %(window)s uploads counted together; the first run paid for all of them",
        "count_window",
    ),
    "gate_of_snapshot": gettext_lazy("over a registered table; its snapshot is %(snapshot)s"),
    "random_choice": ngettext_lazy("%(picks)s record at random", "%(picks)s records at random", "count_picks"),
    "top_c": ngettext_lazy(
        "%(picks)s of %(pool_size)s record by a noisy score",
        "%(picks)s of %(pool_size)s records by a noisy score",
        "count_pool_size",
    ),
    "bernoulli_screen": gettext_lazy("a coin for each record, of rate %(q_hi)s or %(q_lo)s"),
    "exponential_screen": gettext_lazy("a coin for each record, rarer with its distance from the boundary"),
    "exposure_capped_screen": ngettext_lazy(
        "coins of rate %(q_hi)s or %(q_lo)s, at most %(exposures)s look at each record",
        "coins of rate %(q_hi)s or %(q_lo)s, at most %(exposures)s looks at each record",
        "count_exposures",
    ),
    "screen_round": gettext_lazy("coins of rate %(q_hi)s or %(q_lo)s, paid with the first round of the series"),
    "secret_choice": gettext_lazy("secret coins of rate at most %(rate)s; paid when a model is released"),
    "cell_counts": ngettext_lazy(
        "noisy counts of records in %(cells)s public cell, for a sample spread over it",
        "noisy counts of records in %(cells)s public cells, for a sample spread over them",
        "count_cells",
    ),
    "second_moments": ngettext_lazy(
        "noisy second moments of %(dimension)s column",
        "noisy second moments of %(dimension)s columns",
        "count_dimension",
    ),
    "mutual_information_ogd": gettext_lazy("gradients clipped to %(lipschitz)s with noise of scale %(sigma)s"),
    "bandit_ogd": gettext_lazy("gradients from yes and no with noise of scale %(sigma)s"),
    "stream": gettext_lazy("every record in one slot: a coin of rate %(q_hi)s or %(q_lo)s and one noisy update"),
    "gaussian": gettext_lazy("Gaussian noise of scale %(sigma)s"),
    "minibatch_sgd": gettext_lazy("noisy updates from small batches"),
    "output_perturbation": gettext_lazy("a certified minimum with noise on the weights"),
    "objective_perturbation": gettext_lazy("the minimum of a randomly tilted objective"),
    "gaussian_objective_perturbation": gettext_lazy("the minimum of an objective tilted by Gaussian noise"),
    "label_training": gettext_lazy("on answers to public questions"),
    "secret_sample": gettext_lazy("on a secret sample of rate at most %(rate)s"),
    "secret_series": gettext_lazy("on a series of secret blocks, of which a record is in one at most"),
    "secret_block": gettext_lazy("on secret block %(block)s of a series of which a record is in one at most"),
    "running_sums": gettext_lazy("noisy sums of all batches so far, released anew with every batch"),
    "gradient_steps": ngettext_lazy(
        "%(steps)s noisy gradient step over all rows", "%(steps)s noisy gradient steps over all rows", "count_steps"
    ),
    "centered_gradient_steps": ngettext_lazy(
        "%(steps)s noisy gradient step over all rows, taken about their noisy mean",
        "%(steps)s noisy gradient steps over all rows, taken about their noisy mean",
        "count_steps",
    ),
    "sums": gettext_lazy("noisy sums of rows and of products of their columns"),
    "randomized_answers": gettext_lazy(
        "what a question's answers agree on, randomised among %(n_classes)s classes; paid once for all questions"
    ),
    "post_processing": gettext_lazy("computed from paid outputs only"),
    "people": ngettext_lazy(
        "for a person with at most %(records_per_person)s record",
        "for a person with at most %(records_per_person)s records",
        "count_records_per_person",
    ),
}
# The same in two or three words, for tables and plots.
NAMES = {
    "k_anonymity_gate": gettext_lazy("k-anonymity gate"),
    "threshold_gate": gettext_lazy("noisy threshold gate"),
    "gate_window": gettext_lazy("gate over several uploads"),
    "gate_of_snapshot": gettext_lazy("gate over a registered table"),
    "random_choice": gettext_lazy("random choice"),
    "top_c": gettext_lazy("top-c choice"),
    "bernoulli_screen": gettext_lazy("screen of two rates"),
    "exponential_screen": gettext_lazy("exponential screen"),
    "exposure_capped_screen": gettext_lazy("screen with few looks"),
    "screen_round": gettext_lazy("round of a screen"),
    "secret_choice": gettext_lazy("secret choice"),
    "cell_counts": gettext_lazy("noisy counts of clusters"),
    "second_moments": gettext_lazy("principal directions"),
    "mutual_information_ogd": gettext_lazy("online gradient descent"),
    "bandit_ogd": gettext_lazy("online descent by yes and no"),
    "stream": gettext_lazy("stream"),
    "gaussian": gettext_lazy("Gaussian noise"),
    "minibatch_sgd": gettext_lazy("noisy mini-batches"),
    "output_perturbation": gettext_lazy("output perturbation"),
    "objective_perturbation": gettext_lazy("objective perturbation"),
    "gaussian_objective_perturbation": gettext_lazy("objective perturbation, Gaussian"),
    "label_training": gettext_lazy("training on answers"),
    "secret_sample": gettext_lazy("training on a secret sample"),
    "secret_series": gettext_lazy("trainings on a series of secret blocks"),
    "secret_block": gettext_lazy("training on a secret block"),
    "running_sums": gettext_lazy("training from running sums"),
    "gradient_steps": gettext_lazy("training by noisy gradient steps"),
    "centered_gradient_steps": gettext_lazy("training by noisy gradient steps about a mean"),
    "sums": gettext_lazy("training from noisy sums"),
    "randomized_answers": gettext_lazy("randomised answers"),
    "post_processing": gettext_lazy("paid outputs only"),
    "people": gettext_lazy("paid together with a project"),
    "limits": gettext_lazy("limits"),
}
STATES = {
    "grant": gettext_lazy("in force"),
    "limit_change": gettext_lazy("in force"),
    "reserve": gettext_lazy("reserved, not settled yet"),
    "commit": gettext_lazy("spent"),
    "charge": gettext_lazy("spent without an output"),
    "void": gettext_lazy("given back, nothing was read"),
    "post_processing": gettext_lazy("free"),
}


def upload_names(subjects: set[str]) -> dict[str, str]:
    """Return the names of the uploads among subjects, by their id as text."""
    ids = [subject.partition(":")[2] for subject in subjects if subject.startswith("dataset:")]
    return {str(pk): name for pk, name in Dataset.objects.filter(pk__in=ids).values_list("pk", "name")}


def subject_words(subject: str, uploads: Mapping[str, str]) -> str:
    """Name what an operation was for."""
    kind, _colon, number = subject.partition(":")
    if kind == "round":
        return _("Round %(number)s") % {"number": number}
    if kind == "release":
        return _("Release %(number)s") % {"number": number}
    if kind == "dataset":
        return _("Upload %(name)s") % {"name": uploads.get(number, number)}
    if kind == "start":
        return _("Private start")
    if kind == "stream":
        return _("The whole stream")
    if kind == "features":
        return _("Features of the images")
    if kind == "answers":
        return _("All answers")
    return subject or _("not named")


def mechanism_words(name: str) -> str:
    """Name a mechanism in a few words."""
    return str(NAMES.get(name) or name.replace("_", " "))


def what_words(*, kind: str, subject: str, purpose: str, event: Mapping[str, Any], uploads: Mapping[str, str]) -> str:
    """Say in one sentence what an operation was."""
    if kind in ("grant", "limit_change"):
        return _limit_words(kind, event)
    of, _colon, number = subject.partition(":")
    if of == "round":
        said = _("The questions of round %(number)s were chosen") % {"number": number}
    elif of == "release":
        said = _("Version %(number)s of the model was trained") % {"number": number}
    elif of == "dataset":
        said = _("The upload %(name)s went through the gate") % {"name": uploads.get(number, number)}
    elif of == "start":
        said = _("The first model was trained on private examples")
    elif of == "stream":
        said = _("The whole stream was paid for, however long")
    elif of == "answers":
        said = _("All answers were paid for, whatever is asked and trained from them")
    elif of == "features":
        said = _("Features of the images were found")
    elif of == "project":
        said = _("The project %(name)s paid for an operation") % {"name": number.partition(":")[0]}
    else:
        said = localized(purpose)
    how = how_words(event)
    return f"{said}: {how}." if how else f"{said}."


def how_words(stored: Mapping[str, Any]) -> str:
    """Name the mechanism with the parameters a person can make sense of; empty where none is stored."""
    try:
        return _how(event_from_json(dict(stored)))
    except (ValueError, TypeError, KeyError):
        return ""


def _how(event: Event) -> str:
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    if event.kind not in HOW:
        return localized(event.summary())
    counts = {f"count_{name}": value for name, value in values.items() if isinstance(value, int)}
    said = HOW[event.kind] % ({name: _number(value) for name, value in values.items()} | counts)
    # Whose mechanism runs on a secret sample, whose update a stream makes, and what a population repeats, are events.
    inner = values.get("inner") or values.get("update") or values.get("event")
    return f"{said}; {_how(inner)}" if isinstance(inner, Event) else str(said)


def reason_words(*, kind: str, reason: str, event: Mapping[str, Any]) -> str:
    """Return why an entry was made: our sentences in the reader's language, a person's own as they wrote it."""
    if kind != "limit_change":
        return localized(reason)
    manager = event.get("approved_by")
    return _("%(own)s (approved by %(manager)s)") % {"own": reason, "manager": manager} if manager else reason


def _limit_words(kind: str, event: Mapping[str, Any]) -> str:
    amounts = {
        "epsilon": epsilon_words(nano_spendable(int(event.get("epsilon_limit_nano", 0)))),
        "delta": delta_words(atto_spendable(int(event.get("delta_limit_atto", 0)))),
    }
    if kind == "grant":
        return _("The account was opened with a limit of ε %(epsilon)s and δ %(delta)s.") % amounts
    return _("The limit was set to ε %(epsilon)s and δ %(delta)s.") % amounts


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return number_format(value, force_grouping=True)
    return str(number_format(f"{value:.4g}"))
