"""Pages of the learner."""

from django.urls import path

from learner import pool_views, views

app_name = "learner"
urlpatterns = [
    path("projects/<slug:slug>/overview/", views.overview, name="overview"),
    path("projects/<slug:slug>/overview/standing/", views.standing, name="standing"),
    path("projects/<slug:slug>/overview/close-block/", views.close_block, name="close_block"),
    path("projects/<slug:slug>/data/pool/", pool_views.ranked_pool, name="ranked_pool"),
    path("projects/<slug:slug>/releases/", views.release_list, name="releases"),
    path("projects/<slug:slug>/releases/<int:version>/", views.release, name="release"),
    path("projects/<slug:slug>/releases/<int:version>/retire/", views.retire, name="retire"),
    path("projects/<slug:slug>/releases/<int:version>/files/<str:name>", views.release_file, name="release_file"),
]
