"""Pages of annotation."""

from django.urls import path

from annotation.views import budget, crowd, data, gate, joining, label, labelling, projects, tokens

app_name = "annotation"
urlpatterns = [
    path("", projects.project_list, name="projects"),
    path("projects/new/", projects.choose_preset, name="choose_preset"),
    path("projects/new/<slug:preset>/", projects.new_project, name="new_project"),
    path("projects/<slug:slug>/", projects.project, name="project"),
    path("projects/<slug:slug>/state/", projects.set_state, name="set_state"),
    path("projects/<slug:slug>/people/", projects.people, name="people"),
    path("projects/<slug:slug>/people/<int:membership_id>/remove/", projects.remove_member, name="remove_member"),
    path("projects/<slug:slug>/people/invitations/", joining.invitations, name="invitations"),
    path(
        "projects/<slug:slug>/people/invitations/<int:invitation_id>/revoke/",
        joining.revoke_invitation,
        name="revoke_invitation",
    ),
    path("projects/<slug:slug>/people/crowd/", crowd.crowd_links, name="crowd_links"),
    path("projects/<slug:slug>/people/crowd/<int:link_id>/revoke/", crowd.revoke_crowd_link, name="revoke_crowd_link"),
    path("projects/<slug:slug>/label/done/", crowd.crowd_done, name="crowd_done"),
    path("join/<str:secret>/", joining.join, name="join"),
    path("crowd/<str:token>/", crowd.crowd_start, name="crowd_start"),
    path("projects/<slug:slug>/data/", data.data, name="data"),
    path("projects/<slug:slug>/data/uploads/", data.uploads, name="uploads"),
    path("projects/<slug:slug>/data/<int:dataset_id>/", data.dataset, name="dataset"),
    path("projects/<slug:slug>/data/<int:dataset_id>/gate/", data.start_gate, name="start_gate"),
    path("projects/<slug:slug>/gate/", gate.plan, name="gate"),
    path("projects/<slug:slug>/gate/survey/<int:dataset_id>/", gate.survey, name="survey"),
    path("projects/<slug:slug>/data/answers/", data.label_budget, name="label_budget"),
    path("projects/<slug:slug>/budget/", budget.budget, name="budget"),
    path("projects/<slug:slug>/budget/statement.csv", budget.download_statement, name="statement"),
    path("projects/<slug:slug>/budget/<int:account_id>/", budget.change_limit, name="change_limit"),
    path("projects/<slug:slug>/labelling/", labelling.labelling, name="labelling"),
    path("projects/<slug:slug>/labelling/guidelines/", labelling.guidelines, name="guidelines"),
    path("projects/<slug:slug>/labelling/reports/", labelling.reported, name="reported"),
    path("projects/<slug:slug>/labelling/questions/<int:query_id>/", labelling.decide, name="decide"),
    path("projects/<slug:slug>/labelling/reports/<int:report_id>/", labelling.resolve, name="resolve"),
    path("tokens/", tokens.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke/", tokens.revoke, name="revoke_token"),
    path("projects/<slug:slug>/label/", label.label, name="label"),
    path("projects/<slug:slug>/label/undo/", label.undo, name="undo"),
    path("assignments/<uuid:assignment_id>/submit/", label.submit, name="submit"),
    path("assignments/<uuid:assignment_id>/skip/", label.skip, name="skip"),
    path("projects/<slug:slug>/label/guidelines/", label.read_guidelines, name="read_guidelines"),
    path("projects/<slug:slug>/label/why/", label.why, name="why"),
    path("assignments/<uuid:assignment_id>/flag/", label.flag, name="flag"),
    path("assignments/<uuid:assignment_id>/comment/", label.comment, name="comment"),
    path("assignments/<uuid:assignment_id>/image.png", label.question_image, name="question_image"),
]
