"""What managers look for among the questions, and what they do with those they chose."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.answers.selectors import answer_names
from annotation.browsing.selectors import PAGE, SHORTEST_SEARCH, WantedQuestions, known_annotators
from annotation.browsing.services import assigning
from annotation.models import Project, QueryState, ReportKind
from annotation.models.questions import ASKED
from annotation.reports.forms import WordsField
from annotation.reports.services.reporting import MAX_COMMENT_LENGTH
from annotation.wording import class_name
from annotation.work.rest import row_id

AGREEMENT = (("", _("any")), ("all", _("all the same")), ("divided", _("divided")))
AGES = (
    ("", _("any")),
    ("new1", _("answered in a day")),
    ("new7", _("answered in seven days")),
    ("old7", _("no answer for seven days")),
    ("old30", _("no answer for thirty days")),
)
# Reports as long as they are open, which is as long as nobody read what was said.
UNREAD = {ReportKind.COMMENT: _("unread comment"), ReportKind.REPLY: _("reply that is not read yet")}
FLAGS = [
    ("", _("any")),
    ("any", _("with any open report")),
    ("talk", _("with comments")),
    *((kind.value, UNREAD.get(kind, kind.label)) for kind in ReportKind),
]

ACTIONS = ("set_aside", "send_back", "assign", "unassign")


def _left(name: str) -> str:
    return gettext("{name} (has left)").format(name=name)


class QuestionFilter(forms.Form):
    """Which questions; an empty field narrows nothing, and the address of the answer is the view to keep."""

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
        help_text=_("Three letters or more."),
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
            field.choices = [("", _("any")), *list(choices)]  # type: ignore[call-overload]
        if not readable:
            del self.fields["text"]
        if assigning.assigning_refusal(project) is not None:
            del self.fields["assigned"]

    def wanted(self) -> WantedQuestions:
        """Return what was chosen; what cannot be read narrows nothing."""
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
    """What to do with the questions that were ticked."""

    action = forms.ChoiceField(choices=[(name, "") for name in ACTIONS])
    comment = forms.CharField(required=False, max_length=MAX_COMMENT_LENGTH)
    person = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)
    question = forms.TypedMultipleChoiceField(coerce=int)

    def __init__(self, data: Any, *, project: Project) -> None:
        super().__init__(data)
        people = self.fields["person"]
        assert isinstance(people, forms.ChoiceField)
        people.choices = list(assigning.assignable_annotators(project).values_list("user", "user__username"))
        # Those of one page; whether they are the project's the service sees.
        sent = [each for each in data.getlist("question")[:PAGE] if row_id(each) is not None]
        field = self.fields["question"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(each, each) for each in sent]


class ReplyForm(forms.Form):
    """What a manager writes about a question, and to whom."""

    person_id = forms.IntegerField(min_value=1, max_value=2**31 - 1)
    text = WordsField(required=False)
