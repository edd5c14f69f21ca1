"""Language and time zone in which a person reads the site; kept by the browser, so they need no account."""

import zoneinfo
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from annotation.people.services import letters


class PreferencesForm(forms.Form):
    language = forms.ChoiceField(label=_("Language"))
    zone = forms.ChoiceField(label=_("Time zone"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        languages, zones = self.fields["language"], self.fields["zone"]
        assert isinstance(languages, forms.ChoiceField)
        assert isinstance(zones, forms.ChoiceField)
        languages.choices = settings.LANGUAGES
        zones.choices = [(name, name.replace("_", " ")) for name in sorted(zoneinfo.available_timezones())]


def preferences(request: HttpRequest) -> HttpResponse:
    initial = {"language": get_language(), "zone": timezone.get_current_timezone_name()}
    form = PreferencesForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        onward = request.POST.get("next", "")
        if not url_has_allowed_host_and_scheme(onward, {request.get_host()}, require_https=request.is_secure()):
            onward = "annotation:projects"
        response = redirect(onward)
        kept = {settings.LANGUAGE_COOKIE_NAME: "language", settings.ZONE_COOKIE_NAME: "zone"}
        for name, field in kept.items():
            value = form.cleaned_data[field]
            response.set_cookie(
                name, value, max_age=settings.LANGUAGE_COOKIE_AGE, samesite="Lax", secure=settings.HTTPS
            )
        if isinstance(request.user, User):
            letters.keep_language(person=request.user, language=form.cleaned_data["language"])
        return response
    context = {"form": form, "next": request.GET.get("next", "")}
    return render(request, "preferences.html", context, status=422 if form.errors else 200)
