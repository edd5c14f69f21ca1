"""Values on pages, by the templates that write them; pages that managers alone may open stand by their address."""

from dpal_site.observables.kinds import (
    EVERYBODY,
    LABELLERS,
    MEMBERS,
    MODELS,
    REVIEWERS,
    TRUSTED,
    Basis,
    Shown,
    for_managers,
    for_operators,
)
from dpal_site.observables.model_pages import BUDGET, DASHBOARD, RELEASES

# What templates say to themselves.
LANGUAGE = frozenset({"None", "True", "False"})
LOOPS = "forloop."

EVERY_PAGE = (
    Shown(
        "base.html annotation/_project_nav.html",
        "language right_to_left request.path user.pk user.get_username user.is_authenticated user.is_staff"
        " project.viewer_manages request.session.crowd_participant",
        EVERYBODY,
        Basis.OWN,
        "who looks, and at what",
    ),
    Shown(
        "base.html",
        "message message.tags messages",
        EVERYBODY,
        Basis.OWN,
        "what came of the viewer's own last deed",
    ),
    Shown(
        "base.html annotation/_project_nav.html",
        "project.name project.slug tab",
        EVERYBODY,
        Basis.PUBLIC,
        "declared by the project's managers; on pages about a project alone",
    ),
    Shown(
        "annotation/_field.html annotation/_form_errors.html preferences.html second_factor.html first_account.html",
        "field field.* form form.* error next onward",
        EVERYBODY,
        Basis.OWN,
        "a form: its labels, the choices of the site, what the viewer sent and what is wrong with it",
    ),
    Shown(
        "refused.html annotation/questions/not_invited.html",
        "reason request.path",
        EVERYBODY,
        Basis.PUBLIC,
        "the rule that a request breaks, as by REST",
    ),
    Shown(
        "403.html 403_csrf.html 404.html 405.html 500.html unavailable.html",
        "",
        EVERYBODY,
        Basis.PUBLIC,
        "the same words for everybody",
    ),
)
COMING_AND_GOING = (
    Shown(
        "annotation/projects/projects.html",
        "cards card.roles card.stands closed may_open request.user.get_username",
        EVERYBODY,
        Basis.OWN,
        "the viewer's own projects and roles",
    ),
    Shown(
        "annotation/projects/projects.html",
        "card.project.name card.project.question card.project.slug card.project.state card.project.get_state_display"
        " card.words word",
        MEMBERS,
        Basis.PUBLIC,
        "declared by the project's managers",
    ),
    Shown(
        "annotation/_moving.html learner/_card.html",
        "part seen request.get_full_path project.slug",
        EVERYBODY,
        Basis.OWN,
        "the address that is looked at, and a keyed tag of what it shows",
    ),
    for_managers(
        "learner/_card.html",
        "guidance.blocker guidance.blocker.label guidance.sentence guidance.status.step secret counts.open"
        " counts.newly_done project.labels_per_release",
        "what the project waits for, and how far its questions are",
    ),
    Shown(
        "annotation/projects/projects.html learner/_card.html annotation/projects/_card_stands.html"
        " annotation/budget/_meter.html",
        "card.budgets sheet.guarantee.epsilon_limit sheet.guarantee.epsilon_reserved"
        " sheet.guarantee.epsilon_spent sheet.percent_spent sheet.percent_settled card.model card.model.version"
        " card.model.accuracy card.model.constant card.model.described card.model.loses_to sheet.is_full",
        MODELS,
        Basis.BOOKKEEPING,
        "what was spent of each limit, and the newest released version on public examples, as on the project's pages",
    ),
    Shown(
        "annotation/people/tokens.html",
        "form secret tokens token.*",
        EVERYBODY,
        Basis.OWN,
        "the viewer's own tokens, each secret once",
    ),
    Shown(
        "annotation/people/mails.html annotation/people/_mail_stays.html",
        "form address leaves links",
        EVERYBODY,
        Basis.OWN,
        "what the viewer wants by mail, where it goes, and whether this site sends any",
    ),
    Shown(
        "annotation/people/join.html",
        "invitation.created_by.get_username invitation.project.name role",
        EVERYBODY,
        Basis.PUBLIC,
        "for whoever holds the secret in the address: who invites where, in which role",
    ),
    Shown(
        "annotation/people/join.html annotation/people/crowd_start.html",
        "is_participant request.path user.get_username user.is_authenticated",
        EVERYBODY,
        Basis.OWN,
        "who looks",
    ),
    Shown(
        "annotation/people/crowd_start.html",
        "arrival.is_preview arrival.parameters.items is_other name value valid",
        EVERYBODY,
        Basis.OWN,
        "what the crowd platform sent along with the person",
    ),
    Shown(
        "annotation/people/crowd_start.html annotation/questions/crowd_done.html",
        "link.answers_wanted link.project.name link.project.question participant.link.answers_wanted"
        " participant.link.completion_code on_prolific project.name project.slug",
        EVERYBODY,
        Basis.PUBLIC,
        "what a manager put into the crowd link",
    ),
    Shown(
        "annotation/questions/crowd_done.html",
        "answers is_complete",
        LABELLERS,
        Basis.OWN,
        "how much the person answered",
    ),
)
QUESTIONS = (
    Shown(
        "annotation/questions/label.html annotation/questions/_label.html annotation/questions/_label_empty.html"
        " annotation/questions/_label_others.html annotation/questions/_label_question.html"
        " annotation/questions/_why.html annotation/questions/_promise.html annotation/questions/why.html"
        " annotation/_no_question.html"
        " annotation/review/own_statistics.html annotation/questions/own_answers.html"
        " annotation/questions/guidelines.html annotation/questions/_guidelines.html"
        " annotation/questions/_label_guidelines.html annotation/choices/_keys_choose.html"
        " annotation/choices/_keys_several.html annotation/choices/_keys_confirm.html",
        "project.name project.slug project.question project.data_kind project.columns column"
        " column.name column.high project.confirm_answers"
        " project.answers_per_day project.answers_per_person project.currency project.oracle why"
        " project.gold_share"
        " project.none_allowed takes_several project.normalizer project.privacy_unit project.guidelines quiet_from"
        " quiet_until midnight zone answers_cap",
        LABELLERS,
        Basis.PUBLIC,
        "declared by the project's managers",
    ),
    Shown(
        "annotation/questions/_label.html annotation/questions/_label_others.html"
        " annotation/questions/_label_guidelines.html annotation/questions/_guidelines.html"
        " annotation/questions/guidelines.html",
        "guidelines_changed guidelines_open with_guidelines guidelines.examples guidelines.created_at"
        " guidelines.text guidelines.version guidelines_shown examples example.*",
        LABELLERS,
        Basis.PUBLIC,
        "guidelines, which managers write for annotators",
    ),
    Shown(
        "annotation/questions/_label_question.html annotation/questions/_picture.html"
        " annotation/questions/_listed_image.html",
        "answer question question.fields question.image_url question.text image_source url source image.width"
        " image.height number called",
        LABELLERS,
        Basis.PAID,
        "in a crowd project gate output; in a trusted one the record itself, which its annotators may see",
    ),
    Shown(
        "annotation/questions/_beside.html",
        "beside.owner_id beside.metadata beside.metadata.items name value",
        TRUSTED | REVIEWERS,
        Basis.INSIDE,
        "columns the owner declared to be shown beside a record, in trusted projects alone",
    ),
    Shown(
        "annotation/questions/_label_question.html",
        "guess",
        LABELLERS,
        Basis.DERIVED,
        "the last released model's guess",
    ),
    Shown(
        "annotation/questions/_label_question.html annotation/questions/_label_answer.html"
        " annotation/choices/_label_choose.html",
        "suggestion suggestion.name suggestion.percent asked.suggested",
        LABELLERS,
        Basis.DERIVED,
        "a released model applied to what stands beside it; whether it is shown is a coin of its own",
    ),
    Shown(
        "annotation/questions/label.html annotation/questions/_label_answer.html annotation/choices/_label_choose.html"
        " annotation/choices/_label_scale.html annotation/choices/_label_several.html"
        " annotation/choices/_label_ticked.html annotation/choices/_label_find.html"
        " annotation/questions/_label_classes.html annotation/choices/_keys_choose.html"
        " annotation/choices/_keys_several.html annotation/choices/_keys_confirm.html annotation/choices/_digits.html"
        " annotation/questions/_label_others.html annotation/questions/_label_instead.html"
        " annotation/questions/_label_undo.html",
        "class_list classes_mark own_keys class_digits is_many is_grouped groups heading members colour suggests one.*"
        " words example asked.answers asked.is_many asked.kind.widget asked.with_list keys_page"
        " asked.kind.most_classes asked.kind.names_none asked.confirm_answers"
        " asked.told asked.has_guess asked.oracle choices"
        " letter shortcut key name value token slug flags.items reason reasons.items",
        LABELLERS,
        Basis.PUBLIC,
        "the project's classes and what a question can be answered instead",
    ),
    Shown(
        "annotation/questions/_label.html annotation/questions/_label_answer.html"
        " annotation/choices/_label_choose.html annotation/choices/_label_find.html"
        " annotation/choices/_label_several.html annotation/choices/_label_ticked.html"
        " annotation/questions/_label_instead.html annotation/questions/_label_undo.html"
        " annotation/questions/_label_empty.html annotation/questions/label.html",
        "assignment assignment_id asked.earlier last_answer undo instead done_today an_hour goal notice problem"
        " request.session.crowd_participant",
        LABELLERS,
        Basis.OWN,
        "the viewer's own lease, answers and pace",
    ),
    Shown(
        "annotation/questions/_label.html annotation/questions/_label_empty.html annotation/questions/label.html"
        " annotation/questions/why.html annotation/projects/projects.html annotation/_no_question.html",
        "waiting more_than state asks card.waiting.asks card.waiting.state card.waiting.until",
        LABELLERS,
        Basis.DERIVED,
        "how many questions are open for this person and why none is: by what was asked and how often it was answered,"
        " never by what was answered",
    ),
    Shown(
        "annotation/questions/_why.html annotation/questions/_promise.html",
        "receipt.answers_unit receipt.delta receipt.epsilon receipt.factor receipt.why",
        LABELLERS,
        Basis.PUBLIC,
        "limits of the account and rates of the gate",
    ),
    Shown(
        "annotation/review/own_statistics.html",
        "is_warned own.earned own.seconds own.skipped own.today own.week own.sheet.answers own.sheet.checks.*"
        " own.sheet.membership.pause_reason own.sheet.membership.paused_at",
        LABELLERS,
        Basis.OWN,
        "what the viewer did; in a crowd it is judged by hidden checks alone, whose answers are not protected",
    ),
    Shown(
        "annotation/questions/own_answers.html annotation/questions/_own_asked.html",
        "page.answers page.before one.guess one.label.* one.may_change one.name one.places one.query_id choices value"
        " name only",
        LABELLERS,
        Basis.OWN,
        "the viewer's own answers, and whether one may still be changed: by when it was given and whether a training"
        " may have used it, never by what others answered",
    ),
    Shown(
        "annotation/questions/own_answers.html annotation/questions/_own_asked.html"
        " annotation/questions/_whole_text.html",
        "one.question one.question.* text",
        LABELLERS,
        Basis.PAID,
        "what the viewer was asked before: in a crowd project gate output; in a trusted one the record itself",
    ),
    Shown(
        "annotation/questions/own_answers.html annotation/questions/_said.html",
        "page.others one.said one.is_unread one.query_id word.* only project.slug",
        LABELLERS,
        Basis.OWN,
        "what the viewer said about questions they were asked, and in trusted projects what managers said to them: they"
        " know what others answered, so in front of a crowd the database takes no word of theirs",
    ),
    Shown(
        "annotation/questions/_said.html",
        "writes_back",
        LABELLERS,
        Basis.PUBLIC,
        "whether managers may write to annotators, by how the project is declared",
    ),
    Shown(
        "annotation/questions/label.html",
        "sent_back",
        TRUSTED,
        Basis.INSIDE,
        "how much managers said that the viewer has not read: in trusted projects alone",
    ),
    Shown(
        "annotation/review/own_statistics.html",
        "own.sheet.accepted own.sheet.refused own.sheet.waiting",
        TRUSTED,
        Basis.INSIDE,
        "which answers became labels: in trusted projects alone, whose annotators are inside",
    ),
    Shown(
        "annotation/review/review.html annotation/questions/_picture.html annotation/questions/_whole_text.html",
        "query query.pk url number question question.fields.items question.fields question.image_url question.text"
        " text name value votes n agreed accepted is_disputed is_drawn guess"
        " image image.width image.height source called",
        REVIEWERS,
        Basis.INSIDE,
        "the record, and how many gave which answer to it, without their names: whoever reviews is inside, and in front"
        " of a crowd there are managers alone",
    ),
    Shown(
        "annotation/review/review.html",
        "progress.reviewed progress.together",
        REVIEWERS,
        Basis.INSIDE,
        "how many questions somebody decided, and how many wait for it: by what was answered, so for reviewers alone",
    ),
    Shown(
        "annotation/review/review.html annotation/questions/_guidelines.html"
        " annotation/questions/_label_classes.html annotation/choices/_digits.html",
        "project.name project.slug guidelines.created_at guidelines.text guidelines.version guidelines_shown"
        " examples example example.* class_list classes_mark class_digits heading members one.* words",
        REVIEWERS,
        Basis.PUBLIC,
        "declared and written by the project's managers",
    ),
    Shown(
        "annotation/review/review.html",
        "undoable form comment_form manages trusted closed",
        REVIEWERS,
        Basis.OWN,
        "what the viewer decided last, and what their role lets them do",
    ),
    for_managers(
        "annotation/questions/guidelines.html",
        "current.version earlier form one.* picture_form pictures picture.* snippet missing",
        "guidelines with their earlier versions",
    ),
)
PAGES = (*EVERY_PAGE, *COMING_AND_GOING, *QUESTIONS, *BUDGET, *RELEASES, *DASHBOARD)

# Addresses that managers alone may open, by name, where what is on them needs no row of its own.
FOR_MANAGERS = (
    for_managers(
        "pages",
        "annotation:bad_rows annotation:change_limit annotation:checks annotation:check_image"
        " annotation:classes annotation:merge_class"
        " annotation:compare_answers annotation:compare_configurations annotation:configuration"
        " annotation:configuration_file annotation:crowd_links annotation:data prolific:studies prolific:study"
        " annotation:dataset annotation:decide_limit annotation:download_labels annotation:gate"
        " annotation:exports annotation:export_file"
        " annotation:guidelines annotation:invitations annotation:kind annotation:label_budget"
        " annotation:labelling annotation:limit_requests annotation:log annotation:log_csv annotation:opinions"
        " annotation:payments annotation:people annotation:population annotation:preview annotation:quality"
        " annotation:question annotation:questions annotation:asked_image annotation:reported"
        " annotation:retention annotation:settings annotation:survey"
        " annotation:uploads learner:closing learner:forget learner:overview learner:plan learner:plan_plot"
        " learner:channels learner:ranked_pool learner:next_step learner:retire learner:standing"
        " webhooks:webhooks webhooks:change_webhook webhooks:rotate_webhook_secret learner:work_list",
        "uploads, answers, people, settings: managers are inside",
    ),
    for_operators(
        "pages",
        "annotation:choose_preset annotation:new_population annotation:new_project annotation:wizard learner:draft_plan"
        " learner:draft_plan_plot operations:work admin:*",
        "whoever may open projects, and whoever runs the site, who reads the database, too",
    ),
    Shown(
        "pages",
        "account_* mfa_* socialaccount_* openid_connect_* usersessions_*",
        EVERYBODY,
        Basis.OWN,
        "the sign-in library's pages: the viewer's own account",
    ),
)
