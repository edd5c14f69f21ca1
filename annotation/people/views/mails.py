"""Page of a person's choice of mail."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from annotation.people.forms.mails import MailForm
from annotation.people.identity import person_of
from annotation.people.services import letters, mail_choices


@login_required
@never_cache
def mails(request: HttpRequest) -> HttpResponse:
    """Show where mail goes, and turn it on or off."""
    person = person_of(request)
    choice = mail_choices.choice_of(person)
    form = MailForm(request.POST or None, initial={"wanted": choice.wanted, "language": choice.language})
    if request.method == "POST" and form.is_valid():
        mail_choices.choose_mails(person=person, **form.cleaned_data)
        messages.success(request, _("Kept. The next mails follow it."))
        return redirect("annotation:mails")
    context = {
        "form": form,
        "address": mail_choices.mail_address(person),
        "leaves": letters.leaves_the_site(),
    }
    return render(request, "annotation/people/mails.html", context, status=422 if form.errors else 200)
