"""Second factors: the rule who needs one, and the page that leads there."""

import time
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django_htmx.http import HttpResponseClientRedirect

from annotation import selectors
from annotation.models import Membership
from annotation.people.identity import person_of
from dpal_site.middleware import Middleware

FACTORS = [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]
VERDICT = "second_factor"
# A role somebody was given counts after so long at the latest.
VERDICT_SECONDS = 300
# What somebody needs to set one up, to leave, or to be asked who they are; programs have tokens, which nobody without a
# second factor could make.
ALLOWED = frozenset({"second_factor", "login", "logout", "preferences", "healthz", "readyz", "metrics"})
ALLOWED_PREFIXES = ("mfa_", "account_", "usersessions_", "api:")


class SessionVerdict(StrEnum):
    HAS = "has"
    NOT_ASKED = "not asked"
    MISSING = "missing"


def is_asked_of(user: User) -> bool:
    asked = settings.SECOND_FACTOR
    if not asked:
        return False
    may_open = user.has_perm("annotation.add_project")
    if not (user.is_staff or may_open) and selectors.is_participant_alone(user):
        return False
    if "all" in asked:
        return True
    if "administrators" in asked and (user.is_staff or user.is_superuser):
        return True
    if "managers" in asked and may_open:
        return True
    roles = [name.removesuffix("s") for name in asked]
    return Membership.objects.filter(user=user, role__in=roles).exists()


def verdict_of(request: HttpRequest) -> SessionVerdict:
    user = person_of(request)
    if is_mfa_enabled(user, FACTORS):
        verdict = SessionVerdict.HAS
    elif not is_asked_of(user) or (settings.OIDC_ASKS_SECOND_FACTOR and _vouched_for(request, user)):
        verdict = SessionVerdict.NOT_ASKED
    else:
        verdict = SessionVerdict.MISSING
    request.session[VERDICT] = [verdict, int(time.time())]
    return verdict


def _vouched_for(request: HttpRequest, user: User) -> bool:
    return any(record.get("method") == "socialaccount" for record in get_authentication_records(request, user))


def _known(request: HttpRequest) -> SessionVerdict | None:
    verdict, noted = request.session.get(VERDICT, (None, 0))
    fresh = settings.SERVES_LABELS_ALONE or 0 <= time.time() - noted < VERDICT_SECONDS
    return SessionVerdict(verdict) if verdict in (SessionVerdict.HAS, SessionVerdict.NOT_ASKED) and fresh else None


class SecondFactorMiddleware(Middleware):
    """Lead whoever must have a second factor, and has none, to where one is set up, before any other page."""

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        if not settings.SECOND_FACTOR or SESSION_KEY not in request.session:
            return None
        name = request.resolver_match.view_name if request.resolver_match else ""
        if name in ALLOWED or name.startswith(ALLOWED_PREFIXES) or _known(request):
            return None
        if (
            not settings.SERVES_LABELS_ALONE
            and request.user.is_authenticated
            and verdict_of(request) != SessionVerdict.MISSING
        ):
            return None
        onward = {"next": request.get_full_path()} if request.method == "GET" else {}
        page = reverse("second_factor") + (f"?{urlencode(onward)}" if onward else "")
        return HttpResponseClientRedirect(page) if request.htmx else redirect(page)  # type: ignore[attr-defined]


@login_required
@never_cache
def second_factor(request: HttpRequest) -> HttpResponse:
    onward = request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(onward, {request.get_host()}, require_https=request.is_secure()):
        onward = reverse("annotation:projects")
    if verdict_of(request) != SessionVerdict.MISSING:
        return redirect(onward)
    return render(request, "second_factor.html", {"onward": onward})
