"""Addresses of sign-in by OpenID Connect, as the library names them."""

from django.urls import path

from dpal_site.accounts.openid import views

urlpatterns = [
    path("oidc/<str:provider_id>/login/", views.login, name="openid_connect_login"),
    path("oidc/<str:provider_id>/login/callback/", views.callback, name="openid_connect_callback"),
]
