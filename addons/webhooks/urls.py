"""Pages of webhooks."""

from django.urls import path

from addons.webhooks import views

app_name = "webhooks"
urlpatterns = [
    path("projects/<slug:slug>/releases/webhooks/", views.webhook_page, name="webhooks"),
    path("projects/<slug:slug>/releases/webhooks/<int:webhook_id>/", views.change, name="change_webhook"),
    path(
        "projects/<slug:slug>/releases/webhooks/<int:webhook_id>/secret/",
        views.rotate_secret,
        name="rotate_webhook_secret",
    ),
    path("projects/<slug:slug>/releases/webhooks/<int:webhook_id>/remove/", views.remove, name="remove_webhook"),
    path(
        "projects/<slug:slug>/releases/webhooks/deliveries/<uuid:delivery_id>/",
        views.send_again,
        name="send_webhook_again",
    ),
]
