"""Adapters of allauth: who may sign up, whose email must be confirmed, how second factors are stored."""

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.account.stages import EmailVerificationStage
from allauth.account.utils import get_next_redirect_url
from allauth.core.internal import ratelimit
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve, reverse
from django.utils.translation import gettext as _

from annotation.errors import GroupRefused, LinkEnded, RoleRefused, TooOften
from annotation.people.services import invitations, letters
from annotation.work.services import history
from annotation.work.services.tokens import sealer
from dpal_site.accounts import guessing
from dpal_site.accounts.first_account import may_make_first
from dpal_site.operations import security

SECOND_FACTORS = b"second factors"
FAILURES_OF_ONE_ADDRESS = "10/m/ip"


def may_sign_up(request: HttpRequest) -> bool:
    return settings.SIGNUP == "open" or invitations.is_live(request.session.get("invitation"))


def sign_up_context(request: HttpRequest) -> dict[str, Any]:
    """Let the login page offer to open an account where that would work, and say whether a letter arrives."""
    at_login = request.path.endswith("/login/")
    return {
        "mail_leaves": letters.leaves_the_site(),
        "may_sign_up": at_login and may_sign_up(request),
        "may_make_first": at_login and may_make_first(request),
    }


def _name_in(credentials: Mapping[str, Any]) -> str:
    return str(credentials.get("username") or credentials.get("email") or "")


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return may_sign_up(request)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count failed guesses ourselves: the library's count would lock an account for everybody."""
        name = _name_in(credentials)
        try:
            self._attempt = guessing.count_password_try(request, name)
        except TooOften as early:
            raise self._too_early(request, name) from early
        self._login_failed_rl_usage = ratelimit.consume(
            request, app="allauth.account", action="login_failed", config={"login_failed": FAILURES_OF_ONE_ADDRESS}
        )
        if not self._login_failed_rl_usage:
            raise self._too_early(request, name)

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        user = super().authenticate(request, **credentials)
        if user is not None:
            guessing.take_back(self._attempt)
        return user

    def _delete_login_attempts_cached_email(self, request: HttpRequest, **credentials: Any) -> None:
        guessing.forget(request, _name_in(credentials))

    def _too_early(self, request: HttpRequest, name: str) -> Exception:
        security.note("limit.reached", request, account=security.account_digest(name))
        refused: Exception = self.validation_error("too_many_login_attempts")
        return refused

    def send_account_already_exists_mail(self, email: str) -> None:
        """Take the time a new account takes, too: its password would be hashed, and how long that takes shows."""
        make_password(secrets.token_urlsafe())
        super().send_account_already_exists_mail(email)

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: object) -> str:
        """Carry along where the person was going: the mail may be read in another browser."""
        address: str = super().get_email_confirmation_url(request, emailconfirmation)
        onward = get_next_redirect_url(request)
        return f"{address}?{urlencode({'next': onward})}" if onward else address

    def post_login(self, request: HttpRequest, user: User, *, redirect_url: str | None, **about: Any) -> HttpResponse:
        onward = take_invitation(request, user, redirect_url) or redirect_url
        response: HttpResponse = super().post_login(request, user, redirect_url=onward, **about)
        guessing.remember_browser(request, response, user)
        return response

    def get_login_stages(self) -> list[str]:
        theirs, ours = "allauth.account.stages.EmailVerificationStage", "dpal_site.accounts.adapter.EmailStage"
        return [ours if stage == theirs else stage for stage in super().get_login_stages()]


def take_invitation(request: HttpRequest, user: User, onward: str | None) -> str | None:
    try:
        match = resolve(urlsplit(onward or "").path)
    except Resolver404:
        return None
    if match.view_name != "annotation:join" or "invitation" not in request.session:
        return None
    try:
        invitation = invitations.find_invitation(secret=match.kwargs["secret"])
        # A link alone joins nobody: its page must have been read in this browser.
        if invitation.pk != request.session["invitation"]:
            return None
        with history.acting(user.get_username()):
            joined = invitations.accept_invitation(invitation=invitation, user=user)
    except (LinkEnded, GroupRefused, RoleRefused):
        # The invitation's own page says so.
        return None
    del request.session["invitation"]
    if joined:
        history.note_action(
            actor=user.get_username(), route=match.view_name, arguments={}, project_id=invitation.project_id
        )
    if invitation.project is None:
        messages.success(request, _("You joined the group."))
        return reverse("annotation:projects")
    messages.success(request, _("Welcome to the project."))
    return reverse("annotation:project", args=[invitation.project.slug])


def confirm_only_address(*, user: User, **_about: object) -> None:
    """Take an account's only address for confirmed: the mail that led to its new password went there."""
    addresses = list(EmailAddress.objects.filter(user=user))
    # Of several nobody knows which one was written to.
    if [address.email.lower() for address in addresses] == [user.email.lower()]:
        addresses[0].set_verified()


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Whoever the configured issuer vouches for is one of us: it opens accounts as it sees fit."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: object) -> bool:
        return True

    def on_authentication_error(self, request: HttpRequest, provider: object, **about: Any) -> None:
        security.note("login.refused", request, reason=getattr(about.get("exception"), "reason", None))


class EmailStage(EmailVerificationStage):  # type: ignore[misc]
    """Ask for a confirmed email only of those who signed up with one; an administrator may open accounts without."""

    def handle(self) -> tuple[HttpResponse | None, bool]:
        person = self.login.user
        if person is not None and not self.login.signup:
            has_address = EmailAddress.objects.filter(user=person).exists()
            if person.last_login is not None or not has_address:
                return None, True
        answer: tuple[HttpResponse | None, bool] = super().handle()
        return answer


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Secrets of second factors lie encrypted in the database, under a key that is not in it."""

    def encrypt(self, text: str) -> str:
        return sealer(SECOND_FACTORS).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return sealer(SECOND_FACTORS).decrypt(encrypted_text.encode()).decode()
