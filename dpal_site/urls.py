"""Routes of the site."""

from importlib.util import find_spec

from allauth.account.decorators import reauthentication_required, secure_admin_login
from allauth.account.views import LoginView
from allauth.usersessions.views import list_usersessions
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path

from dpal_site.accounts import first_account, preferences, second_factor
from dpal_site.api import api
from dpal_site.operations import checks
from dpal_site.operations.metrics import metrics

# The administration asks for the second factor, too.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

# Who found a session open must not end those of the person it belongs to.
sessions_page = reauthentication_required(list_usersessions, allow_get=True)

handler500 = "dpal_site.problems.failed"
urlpatterns = [
    path("healthz", checks.alive, name="healthz"),
    path("readyz", checks.ready, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("login/", LoginView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("accounts/first/", first_account.first_account, name="first_account"),
    path("accounts/second-factor/", second_factor.second_factor, name="second_factor"),
    path("accounts/sessions/", sessions_page, name="usersessions_list"),
    path("accounts/", include("allauth.urls")),
    path("preferences/", preferences.preferences, name="preferences"),
    path("admin/", admin.site.urls),
    path("operations/", include("dpal_site.operations.pages")),
    path("api/v1/", api.urls),
    path("", include("dpal_site.hub")),
    path("", include("dpal_site.wheel")),
    path("", include("annotation.urls")),
    path("", include("learner.urls")),
    *(path("", include(f"addons.{name}.urls")) for name in settings.ADDONS if find_spec(f"addons.{name}.urls")),
]
