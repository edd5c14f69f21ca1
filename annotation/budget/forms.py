"""Forms of limits, of the statement's lines and of populations."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from annotation.budget.action_words import SENTENCES
from annotation.budget.history import actions_in
from annotation.budget.lines import ABOUT, WantedLines
from annotation.budget.population_sheets import SharingTerms, left_words, membership_words, populations_of, rule_against
from annotation.budget.words import LEVEL_CHOICES, LEVELS, STATES
from annotation.choices.cards import ChoiceCards
from annotation.choices.form_fields import DeltaField, EpsilonField
from annotation.models import Project
from annotation.models.history import Action
from annotation.wording import localized
from privacy.accounting.events import MOST_RECORDS_PER_PERSON
from privacy.ledger.models import BudgetAccount

OWN_LIMIT = ""


class CommonLimitForm(forms.Form):
    epsilon_limit = EpsilonField(min_value=0, label=_("Epsilon limit"))
    delta_limit = DeltaField(label=_("Delta limit"))
    reason = forms.CharField(max_length=300, label=_("Reason"), help_text=_("Kept in the ledger with your name."))


class LimitForm(CommonLimitForm):
    level = forms.ChoiceField(
        choices=[(OWN_LIMIT, _("the numbers below")), *LEVEL_CHOICES],
        required=False,
        widget=ChoiceCards,
        label=_("Named limit"),
    )
    field_order = ("level", "epsilon_limit", "delta_limit", "reason")

    def limits(self) -> dict[str, Any]:
        chosen = dict(self.cleaned_data)
        wanted = chosen.pop("level")
        named = next((level for level in LEVELS if level.key == wanted), None)
        return chosen | ({"epsilon_limit": named.epsilon} if named else {})


class AloneForm(forms.Form):
    reason = forms.CharField(max_length=300, label=_("Reason"))


ANY = [("", _("all"))]
LIMITS = ("grant", "limit_change")


class DateInput(forms.DateInput):
    """A browser's own date field, which takes and gives dates in one form whatever the language."""

    input_type = "date"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%d")


class StatementForm(forms.Form):
    account = forms.TypedChoiceField(required=False, coerce=int, empty_value=None, label=_("Account"))
    about = forms.ChoiceField(required=False, choices=[*ANY, *ABOUT.items()], label=_("What"))
    state = forms.ChoiceField(
        required=False,
        choices=[*ANY, *((name, words) for name, words in STATES.items() if name not in LIMITS)],
        label=_("State"),
    )
    who = forms.CharField(required=False, max_length=150, label=_("Who"))
    since = forms.DateField(required=False, widget=DateInput(), label=_("From"))
    until = forms.DateField(required=False, widget=DateInput(), label=_("Until"))
    entry = forms.IntegerField(required=False, min_value=1, max_value=2**62, label=_("Number"))

    def __init__(self, data: Any, *, accounts: Sequence[BudgetAccount], titles: dict[int, str]) -> None:
        super().__init__(data)
        self.accounts = {account.pk: account for account in accounts}
        field = self.fields["account"]
        assert isinstance(field, forms.TypedChoiceField)
        field.choices = [*ANY, *titles.items()]

    def wanted(self) -> WantedLines:
        """Return what to look for; of a form with errors, what is right in it."""
        found = {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}
        account = found.pop("account", None)
        return WantedLines(account=self.accounts.get(account), **found) if account else WantedLines(**found)


class LogFilter(forms.Form):
    actor = forms.ChoiceField(required=False, label=_("Who"))
    route = forms.ChoiceField(required=False, label=_("What"))
    since = forms.DateField(required=False, label=_("From"), widget=DateInput())
    until = forms.DateField(required=False, label=_("Until"), widget=DateInput())

    def __init__(self, data: object, *, project: Project) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        found = project.actions.order_by()
        actors = sorted(found.exclude(actor="").values_list("actor", flat=True).distinct())
        routes = found.values_list("route", flat=True).distinct()
        named = sorted(((route, str(SENTENCES.get(route, route))) for route in routes), key=lambda choice: choice[1])
        for name, choices in (("actor", [(actor, actor) for actor in actors]), ("route", named)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", _("all")), *choices]

    def lines(self, project: Project) -> QuerySet[Action]:
        """Return what fits, newest first; what cannot be read narrows nothing."""
        return actions_in(project, **(self.cleaned_data if self.is_valid() else {}))


UNITS = [
    ("contributor", _("everything of one contributor")),
    ("record", _("one record")),
]
FILTERS = [
    ("pure", _("sums of epsilon and delta: few operations")),
    ("zcdp", _("sums of rho and delta: many small ones")),
]


def person_named(name: str) -> User:
    """Return an active person by name; the refusal says no more than that there is none."""
    found = User.objects.filter(username=name.strip(), is_active=True).first()
    if found is None:
        raise forms.ValidationError(_("No user has this name."))
    return found


class PopulationForm(forms.Form):
    name = forms.CharField(max_length=120, label=_("Name"))
    unit = forms.ChoiceField(
        choices=UNITS,
        label=_("Unit of privacy"),
        help_text=_("With records, each person is assumed to have one in each project."),
    )
    filter = forms.ChoiceField(choices=FILTERS, label=_("Composition"))
    epsilon_limit = EpsilonField(min_value=0, label=_("Epsilon limit"))
    delta_limit = DeltaField(label=_("Delta limit"))
    second = forms.CharField(
        max_length=150,
        label=_("Second manager"),
        help_text=_("Account name of the other manager. Raising the limit and adding managers takes two."),
    )

    def clean_second(self) -> User:
        return person_named(self.cleaned_data["second"])

    def clean(self) -> dict[str, Any]:
        """A sum of rhos becomes an epsilon by a delta alone."""
        data: dict[str, Any] = super().clean() or {}
        if data.get("filter") == "zcdp" and data.get("delta_limit") == 0:
            self.add_error("delta_limit", _("Sums of rho need a delta above 0."))
        return data


class JoinForm(forms.Form):
    project = forms.ModelChoiceField(Project.objects.none(), to_field_name="slug", label=_("Project"))
    records_per_person = forms.IntegerField(
        min_value=1,
        max_value=MOST_RECORDS_PER_PERSON,
        required=False,
        label=_("Records of one person, at most"),
        help_text=_("A person costs at least this many times a record."),
    )

    def __init__(self, *args: Any, projects: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field = self.fields["project"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = projects


class MembershipForm(forms.Form):
    """The population that a new project joins when it is opened, or none: only those it has a conversion to."""

    population = forms.ChoiceField(
        required=False,
        widget=forms.RadioSelect,
        label=_("Common limit with other projects"),
        help_text=_("Joining cannot be undone. Without it, people in several projects lose the sum of their budgets."),
    )
    records_per_person = forms.IntegerField(
        min_value=1,
        max_value=MOST_RECORDS_PER_PERSON,
        required=False,
        label=_("Records of one person, at most"),
        help_text=_("A person costs at least this many times a record."),
    )

    def __init__(
        self, data: Any = None, *, person: Any, terms: SharingTerms, chosen: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(data, initial=dict(chosen or {}))
        self.terms = terms
        self.managed = {each.slug: each for each in populations_of(person)}
        self.unfitting = {
            each.plain_label: rule
            for each in self.managed.values()
            if (rule := rule_against(each, terms, 1)) and each.slug != self._wanted()
        }
        field = self.fields["population"]
        assert isinstance(field, forms.ChoiceField)
        fitting = [each for each in self.managed.values() if each.plain_label not in self.unfitting]
        field.choices = [
            ("", _("none: outside any common limit")),
            *((each.slug, left_words(each)) for each in fitting),
        ]
        if not terms.declares_number:
            del self.fields["records_per_person"]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        population = self.managed.get(data.get("population", ""))
        number = data.get("records_per_person")
        data["population"] = population
        data["records_per_person"] = number if population and self.terms.declares_number else None
        if population is None or self.errors:
            return data
        if broken := rule_against(population, self.terms, 1):
            self.add_error("population", localized(broken))
        elif number is None and self.terms.declares_number:
            self.add_error("records_per_person", localized(rule_against(population, self.terms, None)))
        return data

    def words(self) -> str:
        if not self.is_valid():
            return ""
        chosen = self.cleaned_data
        return membership_words(chosen["population"], self.terms, chosen["records_per_person"])

    def _wanted(self) -> str:
        """Return what is chosen already; where it no longer fits, its rule is said and not that it is unknown."""
        return str((self.data if self.is_bound else self.initial).get("population", ""))


class AppointForm(forms.Form):
    manager = forms.CharField(max_length=150, label=_("Name"))
    reason = forms.CharField(max_length=300, label=_("Reason"))

    def clean_manager(self) -> User:
        return person_named(self.cleaned_data["manager"])
