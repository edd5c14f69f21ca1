"""Where everything is mounted."""

from allauth.account.decorators import secure_admin_login
from allauth.account.views import LoginView
from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path

from dpal_site import first_account, health, preferences
from dpal_site.api import api
from dpal_site.monitoring.metrics import metrics

# The administration asks for the second factor, too.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

handler500 = "dpal_site.failures.failed"
urlpatterns = [
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("login/", LoginView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("accounts/first/", first_account.first_account, name="first_account"),
    path("accounts/", include("allauth.urls")),
    path("preferences/", preferences.preferences, name="preferences"),
    path("admin/", admin.site.urls),
    path("operations/", include("dpal_site.operations")),
    path("api/v1/", api.urls),
    path("", include("annotation.urls")),
    path("", include("learner.urls")),
]
