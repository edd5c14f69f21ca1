"""Forms of the pages about the quality of answers."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.answers.selectors import label_type
from annotation.choices.form_fields import named_field, percent_field, percent_of, share_of
from annotation.choices.quality_checks import QualityChecks, no_share_in_front_of
from annotation.choices.question_plan import QuestionPlan
from annotation.models import Dataset, DatasetRole, DatasetState, Oracle, Project
from annotation.models.quality import Aggregation

# In percent: more checks would leave little to learn from, and nobody is below none.
MOST_CHECKS, LEAST_RIGHT = 50, 1


class QualityForm(forms.Form):
    """What a manager sets; shares are asked for in percent."""

    gold_share = percent_field(
        QualityChecks, "gold_share", label=_("Percent of questions that are hidden checks"), most=MOST_CHECKS
    )
    gold_minimum = named_field(QualityChecks, "gold_minimum")
    gold_warn_below = percent_field(
        QualityChecks, "gold_warn_below", label=_("Warn below this percent right"), least=LEAST_RIGHT
    )
    gold_pause_below = percent_field(
        QualityChecks, "gold_pause_below", label=_("Pause below this percent right"), least=LEAST_RIGHT
    )
    overlap_limit = named_field(QuestionPlan, "overlap_limit")
    aggregation = named_field(QualityChecks, "aggregation")
    reviewed = named_field(QualityChecks, "reviewed")
    review_share = percent_field(
        QualityChecks, "review_share", label=_("Percent of agreed questions that a reviewer decides first")
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {name: percent_of(getattr(project, name)) for name in self.base_fields})
        super().__init__(*args, **kwargs)
        self.fields["overlap_limit"].min_value = project.overlap  # type: ignore[attr-defined]
        if label_type(project).takes_several:
            majority = [(Aggregation.MAJORITY.value, Aggregation.MAJORITY.label)]
            self.fields["aggregation"].choices = majority  # type: ignore[attr-defined]
            self.initial["aggregation"] = Aggregation.MAJORITY.value
        if project.oracle == Oracle.CROWD:
            # Whoever is asked as one more would know that the others disagreed.
            del self.fields["overlap_limit"]
            # Nor are a crowd's answers corrected where they agree.
            del self.fields["reviewed"]

        if no_share_in_front_of(project.settings):
            del self.fields["review_share"]

    def clean(self) -> dict[str, Any]:
        """Refuse a pause that comes before the warning."""
        warn, pause = self.cleaned_data.get("gold_warn_below"), self.cleaned_data.get("gold_pause_below")
        if warn is not None and pause is not None and pause > warn:
            self.add_error("gold_pause_below", _("Pause below the percentage that warns, or at it."))
        return self.cleaned_data

    def values(self) -> dict[str, Any]:
        """Return the fields as the project stores them."""
        shares = ("gold_share", "gold_warn_below", "gold_pause_below", "review_share")
        given = self.cleaned_data
        asked = [name for name in shares if name in given]
        return given | {name: share_of(given[name]) for name in asked}


class ChecksForm(forms.Form):
    """From which public examples checks are made."""

    dataset = forms.ModelChoiceField(
        Dataset.objects.none(), label=_("Public examples"), empty_label=_("choose an upload")
    )
    most = forms.IntegerField(min_value=1, max_value=2000, initial=50, label=_("Checks at most"))

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        public = project.datasets.filter(role=DatasetRole.PUBLIC_TEST, state=DatasetState.READY)
        self.fields["dataset"].queryset = public  # type: ignore[attr-defined]
