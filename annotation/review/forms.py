"""Forms of reviewing, of the data manager and of hidden checks."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.choices.form_fields import named_field, percent_field, percent_of, share_of
from annotation.choices.plans import QualityChecks, QuestionPlan, no_share_in_front_of
from annotation.models import Dataset, DatasetRole, DatasetState, Oracle, Project, QueryState, ReportKind
from annotation.models.kinds import Aggregation
from annotation.models.questions import ASKED
from annotation.questions.forms import answer_field
from annotation.questions.selectors import answer_names, marks_spans, names_several, offered_answers
from annotation.questions.services.flags import MAX_COMMENT_LENGTH
from annotation.review import services
from annotation.review.selectors import PAGE, SHORTEST_SEARCH, WantedQuestions, known_annotators
from annotation.wording import class_name
from annotation.work.rest import row_id


class SettleForm(forms.Form):
    keep_as_check = forms.BooleanField(required=False, label=_("Use as a hidden check"))

    def __init__(self, *args: Any, project: Project, may_keep: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields = {"choice": self._answer(project), **self.fields}
        if project.oracle == Oracle.CROWD or not may_keep:
            # Seen once more, it would tell whoever compares notes that it was disputed.
            del self.fields["keep_as_check"]

    @staticmethod
    def _answer(project: Project) -> forms.Field:
        if names_several(project) or marks_spans(project):
            return answer_field(project, label=_("Classes"))
        names: list[tuple[Any, Any]] = [("", _("choose a class")), *offered_answers(project)]
        return forms.TypedChoiceField(coerce=int, choices=names, label=_("Class"))


AGREEMENT = (("", _("all")), ("all", _("all the same")), ("divided", _("divided")))
AGES = (
    ("", _("all")),
    ("new1", _("answered in a day")),
    ("new7", _("answered in seven days")),
    ("old7", _("no answer for seven days")),
    ("old30", _("no answer for thirty days")),
)
# Reports as long as they are open, which is as long as nobody read what was said.
UNREAD = {ReportKind.COMMENT: _("unread comment")}
FLAGS = [
    ("", _("all")),
    ("any", _("with any open report")),
    ("talk", _("with comments")),
    *((kind.value, UNREAD.get(kind, kind.label)) for kind in ReportKind),
]

ACTIONS = ("set_aside", "send_back", "assign", "unassign")


def _left(name: str) -> str:
    return gettext("{name} (has left)").format(name=name)


class QuestionFilter(forms.Form):
    state = forms.ChoiceField(required=False, label=_("State"))
    choice = forms.TypedChoiceField(required=False, coerce=int, empty_value=None, label=_("Answer"))
    annotator = forms.TypedChoiceField(required=False, coerce=int, empty_value=None, label=_("Annotator"))
    agreement = forms.ChoiceField(required=False, choices=AGREEMENT, label=_("Agreement"))
    round_number = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1, label=_("Round"))
    age = forms.ChoiceField(required=False, choices=AGES, label=_("Age"))
    flag = forms.ChoiceField(required=False, choices=FLAGS, label=_("Reported"))
    assigned = forms.TypedChoiceField(required=False, coerce=int, empty_value=None, label=_("Waits for"))
    text = forms.CharField(
        required=False,
        max_length=200,
        min_length=SHORTEST_SEARCH,
        label=_("Text"),
    )

    def __init__(self, data: object, *, project: Project, readable: bool) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        states = [(state.value, state.label) for state in QueryState if state in ASKED]
        people = known_annotators(project)
        named = {
            "state": states,
            "choice": list(enumerate(map(class_name, answer_names(project)))),
            "annotator": [(one.id, _left(one.name) if one.has_left else one.name) for one in people],
            "assigned": [(one.id, one.name) for one in people if not one.has_left],
        }
        for name, choices in named.items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", _("all")), *list(choices)]  # type: ignore[call-overload]
        if not readable:
            del self.fields["text"]
        if services.assigning_refusal(project) is not None:
            del self.fields["assigned"]

    def wanted(self) -> WantedQuestions:
        chosen: dict[str, Any] = {}
        if self.is_bound:
            self.is_valid()
            chosen = dict(self.cleaned_data)
        age = chosen.pop("age", "")
        days = int(age[3:]) if age else None
        return WantedQuestions(
            newer_days=days if age.startswith("new") else None,
            older_days=days if age.startswith("old") else None,
            **chosen,
        )


class ChosenForm(forms.Form):
    action = forms.ChoiceField(choices=[(name, "") for name in ACTIONS])
    comment = forms.CharField(required=False, max_length=MAX_COMMENT_LENGTH)
    person = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)
    question = forms.TypedMultipleChoiceField(coerce=int)

    def __init__(self, data: Any, *, project: Project) -> None:
        super().__init__(data)
        people = self.fields["person"]
        assert isinstance(people, forms.ChoiceField)
        people.choices = list(services.assignable_annotators(project).values_list("user", "user__username"))
        # Those of one page; whether they are the project's the service sees.
        sent = [each for each in data.getlist("question")[:PAGE] if row_id(each) is not None]
        field = self.fields["question"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(each, each) for each in sent]


# In percent: more checks would leave little to learn from, and nobody is below none.
MOST_CHECKS, LEAST_RIGHT = 50, 1


class QualityForm(forms.Form):
    gold_share = percent_field(QualityChecks, "gold_share", label=_("Hidden checks in percent"), most=MOST_CHECKS)
    gold_minimum = named_field(QualityChecks, "gold_minimum")
    gold_warn_below = percent_field(
        QualityChecks, "gold_warn_below", label=_("Warn below, in percent"), least=LEAST_RIGHT
    )
    gold_pause_below = percent_field(
        QualityChecks, "gold_pause_below", label=_("Pause below, in percent"), least=LEAST_RIGHT
    )
    overlap_limit = named_field(QuestionPlan, "overlap_limit")
    aggregation = named_field(QualityChecks, "aggregation")
    reviewed = named_field(QualityChecks, "reviewed")
    review_share = percent_field(QualityChecks, "review_share", label=_("Agreed questions to review, in percent"))

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {name: percent_of(getattr(project, name)) for name in self.base_fields})
        super().__init__(*args, **kwargs)
        self.fields["overlap_limit"].min_value = project.overlap  # type: ignore[attr-defined]
        if names_several(project) or marks_spans(project):
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
        warn, pause = self.cleaned_data.get("gold_warn_below"), self.cleaned_data.get("gold_pause_below")
        if warn is not None and pause is not None and pause > warn:
            self.add_error("gold_pause_below", _("Pause at or below the warning share."))
        return self.cleaned_data

    def values(self) -> dict[str, Any]:
        shares = ("gold_share", "gold_warn_below", "gold_pause_below", "review_share")
        given = self.cleaned_data
        asked = [name for name in shares if name in given]
        return given | {name: share_of(given[name]) for name in asked}


class ChecksForm(forms.Form):
    dataset = forms.ModelChoiceField(Dataset.objects.none(), label=_("Public examples"), empty_label=_("Choose"))
    most = forms.IntegerField(min_value=1, max_value=2000, initial=50, label=_("Checks at most"))

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        public = project.datasets.filter(role=DatasetRole.PUBLIC_TEST, state=DatasetState.READY)
        self.fields["dataset"].queryset = public  # type: ignore[attr-defined]
