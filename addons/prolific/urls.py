"""Pages of studies."""

from django.urls import path

from addons.prolific import views

app_name = "prolific"
urlpatterns = [
    path("projects/<slug:slug>/people/prolific/", views.studies, name="studies"),
    path("projects/<slug:slug>/people/prolific/account/", views.connect_platform, name="connect_platform"),
    path("projects/<slug:slug>/people/prolific/<int:study_id>/", views.study, name="study"),
    path("projects/<slug:slug>/people/prolific/<int:study_id>/change/", views.change_study, name="change_study"),
    path("projects/<slug:slug>/people/prolific/<int:study_id>/judge/", views.judge_submission, name="judge_submission"),
    path("projects/<slug:slug>/people/prolific/<int:study_id>/bonuses/", views.give_bonuses, name="give_bonuses"),
    path("projects/<slug:slug>/people/prolific/<int:study_id>/settle/", views.settle_bonuses, name="settle_bonuses"),
]
