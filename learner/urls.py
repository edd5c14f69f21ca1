"""Pages of the learner."""

from django.urls import path

from learner import views
from learner.dashboard import views as dashboard_views
from learner.releases import views as release_views
from learner.rounds import closing_views, forgetting_views
from learner.shares import views as shares_views
from learner.simulation import views as plan_views

app_name = "learner"
urlpatterns = [
    path("projects/new/<uuid:draft_id>/plan/", plan_views.draft_plan, name="draft_plan"),
    path(
        "projects/new/<uuid:draft_id>/plan/<str:fingerprint>.svg",
        plan_views.draft_plan_plot,
        name="draft_plan_plot",
    ),
    path("projects/<slug:slug>/overview/", views.overview, name="overview"),
    path("projects/<slug:slug>/overview/standing/", views.standing, name="standing"),
    path("projects/<slug:slug>/overview/next/", views.next_step, name="next_step"),
    path("projects/<slug:slug>/overview/card/", views.card, name="card"),
    path("projects/<slug:slug>/overview/close-block/", views.close_block, name="close_block"),
    path("projects/<slug:slug>/overview/train/", views.train_on_few, name="train_on_few"),
    path("projects/<slug:slug>/dashboard/", dashboard_views.show, name="dashboard"),
    path("projects/<slug:slug>/dashboard/jobs/", dashboard_views.work_list, name="work_list"),
    path("projects/<slug:slug>/dashboard/plots/<slug:name>.svg", dashboard_views.plot, name="dashboard_plot"),
    path("projects/<slug:slug>/dashboard/<slug:name>.csv", dashboard_views.download, name="dashboard_csv"),
    path(
        "projects/<slug:slug>/dashboard/jobs/<slug:kind>/<slug:key>/cancel/", dashboard_views.cancel, name="cancel_work"
    ),
    path("projects/<slug:slug>/dashboard/jobs/<slug:kind>/<slug:key>/retry/", dashboard_views.retry, name="retry_work"),
    path("projects/<slug:slug>/settings/close/", closing_views.closing, name="closing"),
    path("projects/<slug:slug>/settings/close/archive/", closing_views.set_archived, name="set_archived"),
    path("projects/<slug:slug>/settings/close/delete/", closing_views.delete_project, name="delete_project"),
    path("projects/<slug:slug>/data/forget/", forgetting_views.forget, name="forget"),
    path("projects/<slug:slug>/data/forget/preview/", forgetting_views.preview_forget, name="preview_forget"),
    path("projects/<slug:slug>/data/forget/now/", forgetting_views.forget_now, name="forget_now"),
    path("projects/<slug:slug>/budget/plan/", plan_views.plan, name="plan"),
    path("projects/<slug:slug>/budget/plan/<str:fingerprint>.svg", plan_views.plan_plot, name="plan_plot"),
    path("projects/<slug:slug>/releases/", views.release_list, name="releases"),
    path("projects/<slug:slug>/shares/", shares_views.show, name="shares"),
    path("projects/<slug:slug>/shares/shares.csv", shares_views.download, name="shares_csv"),
    path("projects/<slug:slug>/releases/channels/", release_views.channel_page, name="channels"),
    path("projects/<slug:slug>/releases/<int:version>/", release_views.release, name="release"),
    path("projects/<slug:slug>/releases/<int:version>/check/", release_views.check_again, name="check_again"),
    path("projects/<slug:slug>/releases/<int:version>/endorse/", release_views.endorse, name="endorse"),
    path(
        "projects/<slug:slug>/releases/<int:version>/plots/accuracy.svg",
        release_views.accuracy_plot,
        name="accuracy_plot",
    ),
    path(
        "projects/<slug:slug>/releases/<int:version>/plots/calibration-<int:dataset_id>.svg",
        release_views.measure_plot,
        name="measure_plot",
    ),
    path("projects/<slug:slug>/releases/<int:version>/retire/", views.retire, name="retire"),
    path("projects/<slug:slug>/releases/<int:version>/files/<str:name>", views.release_file, name="release_file"),
]
