"""Fields of those routes by which people come, are looked after, and answer, by the schemas of their description."""

from dpal_site.observables.kinds import (
    EVERYBODY,
    LABELLERS,
    MANAGERS,
    REVIEWERS,
    TRUSTED,
    Basis,
    Shown,
    for_managers,
    for_operators,
)

REST_PEOPLE = (
    for_managers("WishOut", "*", "what a population's managers ask of each other, with the words they gave for it"),
    Shown("MailsOut", "*", EVERYBODY, Basis.OWN, "what the caller is told by mail, and their own address"),
    for_operators(
        "StandingOut QueueOut LeasesOut LongWorkOut ActedOut",
        "*",
        "queues and work of all projects, as on the page of operations, without a text, an answer or an annotator",
    ),
    for_managers(
        "MembershipOut RoleGivenOut GroupRoleOut GroupRolesOut",
        "*",
        "who takes part, as on the page of people: managers are inside",
    ),
    for_managers(
        "InvitationOut InvitationMadeOut CrowdLinkOut CrowdLinkMadeOut",
        "*",
        "how people come to a project; the link itself in the answer to who made it, once",
    ),
    for_managers(
        "CheckOut CheckOut.fields CheckOut.metadata ChecksAddedOut AnnotatorOut AgreementOut PaymentOut OpinionOut",
        "*",
        "hidden checks, everybody's answers and their pay, as on the page of quality: managers are inside",
    ),
    Shown(
        "OwnStatisticsOut",
        "answered_today answered_in_seven_days answers skipped seconds checks checks_right low high is_warned is_paused"
        " pause_reason earned currency",
        LABELLERS,
        Basis.OWN,
        "what the caller did; in a crowd it is judged by hidden checks alone, whose answers are not protected",
    ),
    Shown(
        "OwnStatisticsOut",
        "accepted refused undecided",
        TRUSTED,
        Basis.INSIDE,
        "which answers became labels: in trusted projects alone, whose annotators are inside",
    ),
    for_managers(
        "ReportOut SkippedOut SetAsideOut",
        "*",
        "what annotators report, as on its page; `text` for those alone who may read what questions show",
    ),
    Shown(
        "GuidelinesOut GuidelineExampleOut ClassMeaningOut",
        "*",
        LABELLERS | MANAGERS | REVIEWERS,
        Basis.PUBLIC,
        "what managers wrote for whoever is asked or reviews, words about classes among it; examples are made up",
    ),
    Shown("GuidelinesSavedOut", "version", MANAGERS, Basis.PUBLIC, "how many versions of the guidelines there are"),
    for_managers(
        "GatePlanOut GatePlanOut.settings GateOfferOut GateOfferOut.settings PassingOut",
        "*",
        "gates by declared prices; what would pass is as private as the upload it is counted on",
    ),
    Shown(
        "OwnAnswerOut OwnAnswersOut",
        "assignment text fields image_url guess answer choice choices created_at may_change answers before",
        LABELLERS,
        Basis.OWN,
        "the caller's own answers, with what they were shown; whether one may be changed follows from trainings alone",
    ),
    Shown("OwnAnswerOut.fields", "*", LABELLERS, Basis.INSIDE, "a record's columns, in trusted projects alone"),
    Shown(
        "OwnAnswerOut",
        "owner_id metadata",
        TRUSTED,
        Basis.INSIDE,
        "columns the owner declared to be shown beside a record, in trusted projects alone",
    ),
    Shown("OwnAnswerOut.metadata", "*", TRUSTED, Basis.INSIDE, "the same columns, by their names"),
)
