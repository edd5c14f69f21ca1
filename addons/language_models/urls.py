"""Pages of drafts of example texts."""

from django.urls import path

from addons.language_models import views

app_name = "language_models"
urlpatterns = [
    path("projects/new/<uuid:draft_id>/words/", views.draft_for_opening, name="draft_for_opening"),
    path("projects/<slug:slug>/settings/words/", views.draft_for_project, name="draft_for_project"),
    path("words/<uuid:words_id>/", views.words_draft, name="words_draft"),
]
