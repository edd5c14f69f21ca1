"""The first account of an empty site, made on a page by whoever sits at its machine."""

from django import forms
from django.contrib.auth import login
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _

from annotation.models.database import wait_for_lock

HERE = frozenset({"127.0.0.1", "::1"})
# Any number will do that no other lock of the site uses.
LOCK = 7_303
BACKEND = "dpal_site.accounts.logins.ByUserName"


class FirstAccountForm(UserCreationForm):  # type: ignore[type-arg]
    email = forms.EmailField(required=False, label=_("Email"), help_text=_("To set a new password by."))

    class Meta:
        model = User
        fields = ("username", "email")


def may_make_first(request: HttpRequest) -> bool:
    """Say whether nobody has an account yet and the visitor sits at this machine, not behind a proxy on it."""
    here = request.META.get("REMOTE_ADDR") in HERE and "X-Forwarded-For" not in request.headers
    return here and not User.objects.exists()


def first_account(request: HttpRequest) -> HttpResponse:
    if not may_make_first(request):
        raise Http404
    form = FirstAccountForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            wait_for_lock(LOCK)
            if User.objects.exists():
                raise Http404
            user = form.save(commit=False)
            user.is_staff = user.is_superuser = True
            user.save()
        login(request, user, backend=BACKEND)
        return redirect("annotation:projects")
    return render(request, "first_account.html", {"form": form}, status=422 if form.errors else 200)
