"""Pages of annotation."""

from django.urls import path

from annotation.browsing import views as browsing
from annotation.budget.views import budget, limits, lines, log, populations
from annotation.data import retention_views as retention
from annotation.data.views import datasets, uploads
from annotation.exports import views as exports
from annotation.gates.views import planning
from annotation.guidelines.views import pictures as guideline_pictures
from annotation.guidelines.views import versions as guideline_versions
from annotation.people.views import crowd, groups, joining, mails, members, tokens
from annotation.projects.views import classes, configuration_files, kind, overview, settings, wizard
from annotation.quality import views as quality
from annotation.questions.views import label, labelling, own_answers, participations
from annotation.questions.views import label_budget as label_budget_views
from annotation.reports import views as reports
from annotation.review import views as review

app_name = "annotation"
urlpatterns = [
    # First, because it is asked for most.
    path("assignments/<uuid:assignment_id>/submit/", label.submit, name="submit"),
    path("", overview.project_list, name="projects"),
    path("projects/new/", overview.choose_preset, name="choose_preset"),
    path("projects/new/from-file/", configuration_files.from_file, name="from_file"),
    path("projects/new/<slug:preset>/", overview.new_project, name="new_project"),
    path("projects/new/<slug:preset>/<slug:step>/", wizard.wizard, name="wizard"),
    path("projects/<slug:slug>/", overview.project, name="project"),
    path("projects/<slug:slug>/state/", overview.set_state, name="set_state"),
    path("projects/<slug:slug>/beside/", wizard.open_beside, name="open_beside"),
    path("projects/<slug:slug>/settings/", settings.settings, name="settings"),
    path("projects/<slug:slug>/settings/log/", log.log, name="log"),
    path("projects/<slug:slug>/settings/log.csv", log.log_csv, name="log_csv"),
    path("projects/<slug:slug>/settings/retention/", retention.retention, name="retention"),
    path("projects/<slug:slug>/settings/configuration/", settings.configuration, name="configuration"),
    path("projects/<slug:slug>/settings/configuration.json", configuration_files.download, name="configuration_file"),
    path("projects/<slug:slug>/settings/copy/", configuration_files.copy, name="copy_project"),
    path("projects/<slug:slug>/settings/compare/", configuration_files.compare, name="compare_configurations"),
    path("projects/<slug:slug>/settings/classes/", classes.classes, name="classes"),
    path("projects/<slug:slug>/settings/classes/merge/", classes.merge_class, name="merge_class"),
    path("projects/<slug:slug>/settings/classes/merge/back/", classes.take_back_merge, name="take_back_merge"),
    path("projects/<slug:slug>/settings/kind/", kind.kind, name="kind"),
    path("projects/<slug:slug>/people/", members.people, name="people"),
    path("projects/<slug:slug>/people/<int:membership_id>/remove/", members.remove_member, name="remove_member"),
    path("projects/<slug:slug>/people/invitations/", joining.invitations, name="invitations"),
    path(
        "projects/<slug:slug>/people/invitations/<int:invitation_id>/revoke/",
        joining.revoke_invitation,
        name="revoke_invitation",
    ),
    path("projects/<slug:slug>/people/groups/", groups.give_group_role, name="give_group_role"),
    path("projects/<slug:slug>/people/groups/<int:given_id>/take/", groups.take_group_role, name="take_group_role"),
    path("populations/", populations.populations, name="populations"),
    path("populations/new/", populations.new_population, name="new_population"),
    path("populations/<slug:population>/", populations.population, name="population"),
    path("populations/<slug:population>/statement.json", populations.population_statement, name="population_statement"),
    path("populations/<slug:population>/projects/", populations.join_population, name="join_population"),
    path("populations/<slug:population>/limit/", populations.population_limit, name="population_limit"),
    path("populations/<slug:population>/managers/", populations.population_managers, name="population_managers"),
    path(
        "populations/<slug:population>/wishes/<int:wish_id>/", populations.decide_population, name="decide_population"
    ),
    path("groups/", groups.groups, name="groups"),
    path("groups/<int:group_id>/", groups.group, name="group"),
    path("groups/<int:group_id>/name/", groups.rename_group, name="rename_group"),
    path("groups/<int:group_id>/delete/", groups.delete_group, name="delete_group"),
    path("groups/<int:group_id>/people/<int:place_id>/remove/", groups.remove_from_group, name="remove_from_group"),
    path("groups/<int:group_id>/invitations/", groups.group_invitations, name="group_invitations"),
    path(
        "groups/<int:group_id>/invitations/<int:invitation_id>/revoke/",
        groups.revoke_group_invitation,
        name="revoke_group_invitation",
    ),
    path("projects/<slug:slug>/people/crowd/", crowd.crowd_links, name="crowd_links"),
    path("projects/<slug:slug>/people/crowd/<int:link_id>/revoke/", crowd.revoke_crowd_link, name="revoke_crowd_link"),
    path("projects/<slug:slug>/label/done/", participations.crowd_done, name="crowd_done"),
    path("projects/<slug:slug>/label/mine/", quality.own_statistics, name="own_statistics"),
    path("projects/<slug:slug>/label/mine/answers/", own_answers.own_answers, name="own_answers"),
    path("projects/<slug:slug>/label/mine/answers/<int:query_id>/", own_answers.correct_answer, name="correct_answer"),
    path("projects/<slug:slug>/label/mine/answers/<int:query_id>/write/", own_answers.write_back, name="write_back"),
    path("projects/<slug:slug>/quality/", quality.quality, name="quality"),
    path("projects/<slug:slug>/quality/checks/", quality.add_checks, name="add_checks"),
    path("projects/<slug:slug>/quality/checks/all/", quality.checks, name="checks"),
    path("projects/<slug:slug>/quality/checks/<int:check_id>/retire/", quality.retire_check, name="retire_check"),
    path("projects/<slug:slug>/quality/checks/<int:query_id>/image", quality.check_image, name="check_image"),
    path("projects/<slug:slug>/quality/compare/", quality.compare, name="compare_answers"),
    path("projects/<slug:slug>/quality/people/<int:membership_id>/", quality.set_pause, name="set_pause"),
    path("projects/<slug:slug>/quality/review/", review.review_queue, name="review"),
    path("projects/<slug:slug>/quality/review/undo/", review.undo_review, name="undo_review"),
    path("projects/<slug:slug>/quality/review/<int:query_id>/", review.settle, name="settle"),
    path("projects/<slug:slug>/quality/review/<int:query_id>/image", review.review_image, name="review_image"),
    path("projects/<slug:slug>/quality/payments.csv", quality.payments, name="payments"),
    path("projects/<slug:slug>/quality/opinions.csv", quality.opinions, name="opinions"),
    path("join/<str:secret>/", joining.join, name="join"),
    path("crowd/<str:token>/", crowd.crowd_start, name="crowd_start"),
    path("projects/<slug:slug>/data/", datasets.data, name="data"),
    path("projects/<slug:slug>/data/tables/", datasets.register_table, name="register_table"),
    path("projects/<slug:slug>/data/uploads/", datasets.uploads, name="uploads"),
    path("projects/<slug:slug>/data/new/<uuid:draft_id>/", uploads.preview, name="preview"),
    path("projects/<slug:slug>/data/<int:dataset_id>/", datasets.dataset, name="dataset"),
    path("projects/<slug:slug>/data/<int:dataset_id>/bad-rows.csv", uploads.bad_rows, name="bad_rows"),
    path("projects/<slug:slug>/data/<int:dataset_id>/gate/", datasets.start_gate, name="start_gate"),
    path("projects/<slug:slug>/data/labels/<str:format>/", exports.download_labels, name="download_labels"),
    path("projects/<slug:slug>/data/files/", exports.label_files, name="exports"),
    path("projects/<slug:slug>/data/files/<uuid:job_id>/", exports.export_file, name="export_file"),
    path("projects/<slug:slug>/gate/", planning.plan, name="gate"),
    path("projects/<slug:slug>/gate/survey/<int:dataset_id>/", planning.survey, name="survey"),
    path("projects/<slug:slug>/data/answers/", label_budget_views.label_budget, name="label_budget"),
    path("projects/<slug:slug>/budget/", budget.budget, name="budget"),
    path("projects/<slug:slug>/budget/statement/", lines.statement, name="statement"),
    path("projects/<slug:slug>/budget/statement.csv", lines.download_csv, name="statement_csv"),
    path("projects/<slug:slug>/budget/statement.json", lines.download_json, name="statement_json"),
    path("projects/<slug:slug>/budget/<int:account_id>/", limits.change_limit, name="change_limit"),
    path("projects/<slug:slug>/budget/limits/", limits.limit_requests, name="limit_requests"),
    path("projects/<slug:slug>/budget/limits/<int:request_id>/", limits.decide_limit, name="decide_limit"),
    path("projects/<slug:slug>/budget/limits/second-manager/", limits.second_manager, name="second_manager"),
    path("projects/<slug:slug>/labelling/", labelling.labelling, name="labelling"),
    path("projects/<slug:slug>/labelling/guidelines/", guideline_versions.guidelines, name="guidelines"),
    path(
        "projects/<slug:slug>/labelling/guidelines/pictures/",
        guideline_pictures.add_guideline_picture,
        name="add_guideline_picture",
    ),
    path(
        "projects/<slug:slug>/labelling/guidelines/pictures/<str:digest>/",
        guideline_pictures.guideline_picture,
        name="guideline_picture",
    ),
    path(
        "projects/<slug:slug>/labelling/guidelines/pictures/<str:digest>/drop/",
        guideline_pictures.drop_guideline_picture,
        name="drop_guideline_picture",
    ),
    path("projects/<slug:slug>/labelling/reports/", reports.reported, name="reported"),
    path("projects/<slug:slug>/labelling/questions/", browsing.questions, name="questions"),
    path("projects/<slug:slug>/labelling/questions/change/", browsing.change_questions, name="change_questions"),
    path("projects/<slug:slug>/labelling/questions/<int:query_id>/history/", browsing.question, name="question"),
    path("projects/<slug:slug>/labelling/questions/<int:query_id>/write/", browsing.reply, name="reply"),
    path("projects/<slug:slug>/labelling/questions/<int:query_id>/image", browsing.asked_image, name="asked_image"),
    path("projects/<slug:slug>/labelling/questions/<int:query_id>/", reports.decide, name="decide"),
    path("projects/<slug:slug>/labelling/reports/<int:report_id>/", reports.resolve, name="resolve"),
    path("mails/", mails.mails, name="mails"),
    path("tokens/", tokens.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke/", tokens.revoke, name="revoke_token"),
    path("projects/<slug:slug>/label/", label.label, name="label"),
    path("projects/<slug:slug>/label/undo/", label.undo, name="undo"),
    path("assignments/<uuid:assignment_id>/skip/", label.skip, name="skip"),
    path("projects/<slug:slug>/label/guidelines/", label.read_guidelines, name="read_guidelines"),
    path("projects/<slug:slug>/label/guidelines/<str:digest>/", label.told_picture, name="told_picture"),
    path("projects/<slug:slug>/label/why/", label.why, name="why"),
    path("assignments/<uuid:assignment_id>/flag/", label.flag, name="flag"),
    path("assignments/<uuid:assignment_id>/comment/", label.comment, name="comment"),
    path("assignments/<uuid:assignment_id>/image", label.question_image, name="question_image"),
]
