"""The page on which a person chooses what comes by mail."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from annotation.people.forms.mails import MailForm
from annotation.people.identity import person_of
from annotation.people.services import letters, mail_choices


@login_required
@never_cache
def mails(request: HttpRequest) -> HttpResponse:
    """Show what comes by mail and where to, and keep another choice."""
    person = person_of(request)
    form = MailForm(request.POST or None, choice=mail_choices.choice_of(person))
    if request.method == "POST" and form.is_valid():
        mail_choices.choose_mails(person=person, zone=timezone.get_current_timezone_name(), **form.values())
        messages.success(request, _("Kept. The next mails follow it."))
        return redirect("annotation:mails")
    context = {
        "form": form,
        "address": mail_choices.mail_address(person),
        "leaves": letters.leaves_the_site(),
        "morning": mail_choices.MORNING_HOUR,
        "zone": timezone.get_current_timezone_name(),
    }
    return render(request, "annotation/people/mails.html", context, status=422 if form.errors else 200)
