"""Every route of a site's REST interface as a method with types; written by `python -m tests.typed_client`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from dpal.rest_documents import (
    AccountOut,
    ActedOut,
    ActionOut,
    AgreementOut,
    AnnotatorOut,
    AnnotatorRowOut,
    AppointmentIn,
    ArchivedIn,
    AssignmentOut,
    BesideIn,
    BonusesIn,
    CancelledOut,
    ChangedOut,
    ChangeIn,
    ChannelOut,
    CheckedOut,
    CheckOut,
    CheckpointOut,
    ChecksAddedOut,
    ChecksIn,
    ChoiceOut,
    ClassIn,
    ClosedBlockOut,
    CommentIn,
    CommentOut,
    CommentToIn,
    CommonLimitIn,
    CommonLimitOut,
    ComparisonIn,
    ComparisonOut,
    ConfigurationChangeOut,
    ConfigurationFileIO,
    ConfigurationOut,
    ConsistencyOut,
    ContributorIn,
    CrowdLinkIn,
    CrowdLinkMadeOut,
    CrowdLinkOut,
    DatasetOut,
    DecisionIn,
    DeletionIn,
    DeletionOut,
    DeliveryOut,
    DescriptionIn,
    DescriptionOut,
    DifferenceOut,
    EndorsedOut,
    EntryOut,
    EvidenceOut,
    ExportIn,
    FlagIn,
    ForgettingOut,
    GateIn,
    GatePlanOut,
    GroupDeletionIn,
    GroupIn,
    GroupInvitationMadeOut,
    GroupInvitationOut,
    GroupOut,
    GroupPeopleIn,
    GroupRoleIn,
    GroupRoleOut,
    GroupRolesOut,
    GuidelinePictureOut,
    GuidelinesIn,
    GuidelinesOut,
    GuidelinesSavedOut,
    HeardIn,
    InclusionOut,
    InvitationIn,
    InvitationMadeOut,
    InvitationOut,
    JobOut,
    KeptOut,
    Kind,
    KindIn,
    KindPreviewOut,
    LabelDayOut,
    LabelIn,
    LabelOut,
    LimitDecisionIn,
    LimitIn,
    LimitOut,
    LimitRequestOut,
    MailedIn,
    MailsIn,
    MailsOut,
    MemberIn,
    MembershipIn,
    MembershipOut,
    MergedIn,
    MergeIn,
    ModelDifferenceOut,
    ModelOut,
    MostIn,
    MoveIn,
    NextStepOut,
    OpinionOut,
    OwnAnswersOut,
    OwnCommentOut,
    OwnStatisticsOut,
    ParticipationDecisionIn,
    PaymentOut,
    PeopleChangedOut,
    PlanIn,
    PlanOut,
    PlanRowsOut,
    PlatformIn,
    PlatformOut,
    PopulationIn,
    PopulationOut,
    PredictIn,
    PredictOut,
    ProgressOut,
    ProjectIn,
    ProjectOut,
    PurposeRowOut,
    QuestionOut,
    QuestionsOut,
    ReasonIn,
    RecordsOut,
    ReleaseRowOut,
    ReportOut,
    RetentionIn,
    RetiredOut,
    ReviewOut,
    RoleGivenOut,
    RoundOut,
    SecondManagerIn,
    SecondManagerOut,
    SetAsideDecisionIn,
    SetAsideOut,
    SettingsIn,
    SettledIn,
    SkipIn,
    SpendingRowOut,
    StandingOut,
    StartedOut,
    StateIn,
    StudyChangeIn,
    StudyDetailOut,
    StudyIn,
    StudyOut,
    TableIn,
    TracesOut,
    TrainingOut,
    UsePlanIn,
    ViewIn,
    ViewOut,
    WebhookAddedOut,
    WebhookChangeIn,
    WebhookIn,
    WebhookOut,
    WholeGroupOut,
    WishDecisionIn,
    WishOut,
    WorkOut,
)
from dpal.site import Site, quoted
from dpal.uploading import upload


class Rest:
    """A method for each route; `body` is what the route takes, a list comes page by page.

    >>> rest = Rest(Site("https://dpal.example.org"))  # doctest: +SKIP
    >>> [project["slug"] for project in rest.list_projects()]  # doctest: +SKIP
    """

    def __init__(self, site: Site) -> None:
        self.site = site

    def list_projects(self, *, closed: bool | None = None) -> Iterator[ProjectOut]:
        """The caller's projects."""
        return cast("Iterator[ProjectOut]", self.site.listed("projects", query={"closed": closed}))

    def open_project(self, body: ProjectIn, *, key: str = "") -> ProjectOut:
        """Open a project from a configuration file."""
        return cast("ProjectOut", self.site.call("POST", "projects", body=body, key=key))

    def get_project(self, slug: str) -> ProjectOut:
        """One project."""
        return cast("ProjectOut", self.site.call("GET", f"projects/{quoted(str(slug))}"))

    def upload_dataset(self, slug: str, file: Path, fields: Mapping[str, str]) -> DatasetOut:
        """Upload a file; a job reads it."""
        return cast(
            "DatasetOut", upload(self.site, f"projects/{quoted(str(slug))}/datasets", file, fields, lambda sent: None)
        )

    def list_datasets(self, slug: str) -> Iterator[DatasetOut]:
        """Uploads of a project."""
        return cast("Iterator[DatasetOut]", self.site.listed(f"projects/{quoted(str(slug))}/datasets"))

    def register_table(self, slug: str, body: TableIn, *, key: str = "") -> DatasetOut:
        """Register a table as a pool where it lies; a job reads the ends of its files."""
        return cast("DatasetOut", self.site.call("POST", f"projects/{quoted(str(slug))}/tables", body=body, key=key))

    def post_records(self, slug: str, body: dict[str, Any], *, key: str = "") -> RecordsOut:
        """Post records to a stream; each is examined once."""
        return cast("RecordsOut", self.site.call("POST", f"projects/{quoted(str(slug))}/records", body=body, key=key))

    def get_job(self, job_id: str) -> JobOut:
        """Progress of a job."""
        return cast("JobOut", self.site.call("GET", f"jobs/{quoted(str(job_id))}"))

    def start_gate(self, slug: str, dataset_id: str, body: MostIn, *, key: str = "") -> DatasetOut:
        """Send an upload through the gate again; it draws and pays anew."""
        return cast(
            "DatasetOut",
            self.site.call(
                "POST", f"projects/{quoted(str(slug))}/datasets/{quoted(str(dataset_id))}/gate", body=body, key=key
            ),
        )

    def claim_assignment(self, slug: str, *, key: str = "") -> AssignmentOut | None:
        """Claim the next question; 204 when there is none."""
        return cast(
            "AssignmentOut | None", self.site.call("POST", f"projects/{quoted(str(slug))}/assignments", key=key)
        )

    def label_assignment(self, assignment_id: str, body: LabelIn, *, key: str = "") -> LabelOut:
        """Answer a question."""
        return cast(
            "LabelOut", self.site.call("POST", f"assignments/{quoted(str(assignment_id))}/label", body=body, key=key)
        )

    def skip_assignment(self, assignment_id: str, body: SkipIn, *, key: str = "") -> None:
        """Give a question back."""
        self.site.call("POST", f"assignments/{quoted(str(assignment_id))}/skip", body=body, key=key)

    def get_assignment_image(self, assignment_id: str) -> Iterator[bytes]:
        """The image of a question that the caller holds or held."""
        return self.site.streamed(f"assignments/{quoted(str(assignment_id))}/image")

    def export_labels(
        self,
        slug: str,
        *,
        format_: Literal["csv", "jsonl", "parquet", "label_studio", "croissant"] | None = None,
        history: bool | None = None,
    ) -> Iterator[bytes]:
        """Every answer as a file, streamed."""
        return self.site.streamed(f"projects/{quoted(str(slug))}/labels", query={"format": format_, "history": history})

    def start_export(self, slug: str, body: ExportIn, *, key: str = "") -> JobOut:
        """Have every answer written to a file; the job says where it is."""
        return cast("JobOut", self.site.call("POST", f"projects/{quoted(str(slug))}/exports", body=body, key=key))

    def get_export(self, slug: str, job_id: str) -> Iterator[bytes]:
        """The file that a job wrote, whole or in part."""
        return self.site.streamed(f"projects/{quoted(str(slug))}/exports/{quoted(str(job_id))}/file")

    def list_guideline_pictures(self, slug: str) -> list[GuidelinePictureOut]:
        """Pictures of the guidelines."""
        return cast(
            "list[GuidelinePictureOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/guidelines/pictures")
        )

    def add_guideline_picture(self, slug: str, file: Path, fields: Mapping[str, str]) -> GuidelinePictureOut:
        """Keep a picture for the guidelines, without its metadata."""
        return cast(
            "GuidelinePictureOut",
            upload(self.site, f"projects/{quoted(str(slug))}/guidelines/pictures", file, fields, lambda sent: None),
        )

    def get_guideline_picture(self, slug: str, digest: str) -> Iterator[bytes]:
        """A picture of the guidelines, by its digest or by the name that shows it, for who is asked or reviews."""
        return self.site.streamed(f"projects/{quoted(str(slug))}/guidelines/pictures/{quoted(str(digest))}")

    def delete_guideline_picture(self, slug: str, digest: str) -> None:
        """Delete a picture that the guidelines do not show."""
        self.site.call("DELETE", f"projects/{quoted(str(slug))}/guidelines/pictures/{quoted(str(digest))}")

    def list_questions(
        self,
        slug: str,
        *,
        state: Literal["", "open", "closed", "disputed", "in_review", "withdrawn", "set_aside"] | None = None,
        choice: str | None = None,
        annotator: str | None = None,
        agreement: Literal["", "all", "divided"] | None = None,
        round_number: int | None | None = None,
        age: Literal["", "new1", "new7", "old7", "old30"] | None = None,
        flag: Literal["", "any", "talk", "broken", "sensitive", "comment", "returned", "reply"] | None = None,
        tag: str | None = None,
        assigned: str | None = None,
        text: str | None = None,
        before: int | None | None = None,
    ) -> QuestionsOut:
        """What was asked, narrowed down."""
        return cast(
            "QuestionsOut",
            self.site.call(
                "GET",
                f"projects/{quoted(str(slug))}/questions",
                query={
                    "state": state,
                    "choice": choice,
                    "annotator": annotator,
                    "agreement": agreement,
                    "round_number": round_number,
                    "age": age,
                    "flag": flag,
                    "tag": tag,
                    "assigned": assigned,
                    "text": text,
                    "before": before,
                },
            ),
        )

    def get_question_image(self, slug: str, query_id: str) -> Iterator[bytes]:
        """The image of a question, for managers who may read what questions show."""
        return self.site.streamed(f"projects/{quoted(str(slug))}/questions/{quoted(str(query_id))}/image")

    def change_questions(self, slug: str, body: ChangeIn, *, key: str = "") -> ChangedOut:
        """Do something with several questions at once."""
        return cast(
            "ChangedOut", self.site.call("POST", f"projects/{quoted(str(slug))}/questions/changes", body=body, key=key)
        )

    def get_question(self, slug: str, query_id: str) -> QuestionOut:
        """One question with all that happened to it."""
        return cast(
            "QuestionOut", self.site.call("GET", f"projects/{quoted(str(slug))}/questions/{quoted(str(query_id))}")
        )

    def list_views(self, slug: str) -> list[ViewOut]:
        """Kept views: the caller's and shared ones."""
        return cast("list[ViewOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/views"))

    def keep_view(self, slug: str, body: ViewIn, *, key: str = "") -> ViewOut:
        """Keep a view under a name."""
        return cast("ViewOut", self.site.call("POST", f"projects/{quoted(str(slug))}/views", body=body, key=key))

    def drop_view(self, slug: str, view_id: str) -> None:
        """Drop a view of one's own."""
        self.site.call("DELETE", f"projects/{quoted(str(slug))}/views/{quoted(str(view_id))}")

    def list_comments(self, slug: str, query_id: str) -> list[CommentOut]:
        """What was said about a question, by annotator, oldest first."""
        return cast(
            "list[CommentOut]",
            self.site.call("GET", f"projects/{quoted(str(slug))}/questions/{quoted(str(query_id))}/comments"),
        )

    def write_comment(self, slug: str, query_id: str, body: CommentToIn, *, key: str = "") -> None:
        """Write to an annotator about a question; what they commented on it counts as read."""
        self.site.call(
            "POST", f"projects/{quoted(str(slug))}/questions/{quoted(str(query_id))}/comments", body=body, key=key
        )

    def mark_comments_heard(self, slug: str, query_id: str, body: HeardIn, *, key: str = "") -> None:
        """Mark as read what an annotator commented on a question."""
        self.site.call(
            "POST", f"projects/{quoted(str(slug))}/questions/{quoted(str(query_id))}/comments/read", body=body, key=key
        )

    def list_own_comments(self, slug: str, *, unread: bool | None = None) -> list[OwnCommentOut]:
        """What the caller and managers said to each other, the newest 200, newest first."""
        return cast(
            "list[OwnCommentOut]",
            self.site.call("GET", f"projects/{quoted(str(slug))}/comments", query={"unread": unread}),
        )

    def comment_on_assignment(self, assignment_id: str, body: CommentIn, *, key: str = "") -> None:
        """Tell the managers something about a question; what they wrote of it counts as read."""
        self.site.call("POST", f"assignments/{quoted(str(assignment_id))}/comments", body=body, key=key)

    def mark_comments_read(self, assignment_id: str, *, key: str = "") -> None:
        """Mark as read what managers wrote about a question; what came back waits while it may be changed."""
        self.site.call("POST", f"assignments/{quoted(str(assignment_id))}/comments/read", key=key)

    def get_review(self, slug: str) -> ProgressOut:
        """How far the review is."""
        return cast("ProgressOut", self.site.call("GET", f"projects/{quoted(str(slug))}/reviews"))

    def claim_review(self, slug: str, *, key: str = "") -> ReviewOut | None:
        """Claim the next question to review; 204 when none waits."""
        return cast("ReviewOut | None", self.site.call("POST", f"projects/{quoted(str(slug))}/reviews", key=key))

    def get_review_image(self, slug: str, query_id: str) -> Iterator[bytes]:
        """The image of a question that waits for the caller's review."""
        return self.site.streamed(f"projects/{quoted(str(slug))}/reviews/{quoted(str(query_id))}/image")

    def undo_review(self, slug: str, *, key: str = "") -> None:
        """Take the caller's last decision back; its question is what they claim next."""
        self.site.call("POST", f"projects/{quoted(str(slug))}/reviews/undo", key=key)

    def decide_review(self, slug: str, query_id: str, body: DecisionIn, *, key: str = "") -> None:
        """Decide about a question."""
        self.site.call("POST", f"projects/{quoted(str(slug))}/reviews/{quoted(str(query_id))}", body=body, key=key)

    def list_choices(self, *, kind: Kind | None | None = None) -> list[ChoiceOut]:
        """What projects may choose, with parameters and proofs."""
        return cast("list[ChoiceOut]", self.site.call("GET", "choices", query={"kind": kind}))

    def get_configuration(self, slug: str) -> ConfigurationOut:
        """What a project chose."""
        return cast("ConfigurationOut", self.site.call("GET", f"projects/{quoted(str(slug))}/configuration"))

    def change_configuration(self, slug: str, body: SettingsIn, *, key: str = "") -> ConfigurationOut:
        """Choose anew, as far as nothing that was paid for rests on it."""
        return cast(
            "ConfigurationOut",
            self.site.call("PATCH", f"projects/{quoted(str(slug))}/configuration", body=body, key=key),
        )

    def add_class(self, slug: str, body: ClassIn, *, key: str = "") -> ProjectOut:
        """Add a class while people work."""
        return cast(
            "ProjectOut",
            self.site.call("POST", f"projects/{quoted(str(slug))}/configuration/classes", body=body, key=key),
        )

    def merge_class(self, slug: str, body: MergeIn, *, key: str = "") -> ProjectOut:
        """Let a class count as another one."""
        return cast(
            "ProjectOut",
            self.site.call("POST", f"projects/{quoted(str(slug))}/configuration/classes/merges", body=body, key=key),
        )

    def take_back_merge(self, slug: str, body: MergedIn, *, key: str = "") -> ProjectOut:
        """Take a merge back that no training has learned under."""
        return cast(
            "ProjectOut",
            self.site.call(
                "POST", f"projects/{quoted(str(slug))}/configuration/classes/merges/back", body=body, key=key
            ),
        )

    def get_configuration_file(self, slug: str) -> ConfigurationFileIO:
        """A project's configuration as a file."""
        return cast("ConfigurationFileIO", self.site.call("GET", f"projects/{quoted(str(slug))}/configuration/file"))

    def list_configuration_changes(self, slug: str) -> Iterator[ConfigurationChangeOut]:
        """What changed in a project's configuration, and who changed it, newest first."""
        return cast(
            "Iterator[ConfigurationChangeOut]", self.site.listed(f"projects/{quoted(str(slug))}/configuration/changes")
        )

    def get_differences(self, slug: str, other: str) -> list[DifferenceOut]:
        """In which settings two projects differ."""
        return cast(
            "list[DifferenceOut]",
            self.site.call("GET", f"projects/{quoted(str(slug))}/configuration/differences/{quoted(str(other))}"),
        )

    def get_description(self, slug: str) -> DescriptionOut:
        """What a project is called and asks."""
        return cast("DescriptionOut", self.site.call("GET", f"projects/{quoted(str(slug))}/description"))

    def change_description(self, slug: str, body: DescriptionIn, *, key: str = "") -> DescriptionOut:
        """Change what touches no guarantee: name, question, time for one."""
        return cast(
            "DescriptionOut", self.site.call("PATCH", f"projects/{quoted(str(slug))}/description", body=body, key=key)
        )

    def set_project_state(self, slug: str, body: StateIn, *, key: str = "") -> ProjectOut:
        """Pause a project, or let it go on."""
        return cast("ProjectOut", self.site.call("POST", f"projects/{quoted(str(slug))}/state", body=body, key=key))

    def list_retention(self, slug: str) -> list[KeptOut]:
        """How long things are kept, and what goes when."""
        return cast("list[KeptOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/retention"))

    def change_retention(self, slug: str, body: RetentionIn, *, key: str = "") -> list[KeptOut]:
        """Change how long things are kept; what is over its period goes within the hour."""
        return cast(
            "list[KeptOut]", self.site.call("PATCH", f"projects/{quoted(str(slug))}/retention", body=body, key=key)
        )

    def preview_kind(self, slug: str, body: KindIn) -> KindPreviewOut:
        """What choosing another kind of project would change; nothing is stored."""
        return cast("KindPreviewOut", self.site.call("POST", f"projects/{quoted(str(slug))}/kind/preview", body=body))

    def change_kind(self, slug: str, body: KindIn, *, key: str = "") -> ConfigurationOut:
        """Choose another kind of project, while nothing rests on the present one."""
        return cast(
            "ConfigurationOut", self.site.call("POST", f"projects/{quoted(str(slug))}/kind", body=body, key=key)
        )

    def open_beside(self, slug: str, body: BesideIn, *, key: str = "") -> ProjectOut:
        """Open a project with the same settings and random choice, and show its releases beside this one's."""
        return cast("ProjectOut", self.site.call("POST", f"projects/{quoted(str(slug))}/beside", body=body, key=key))

    def list_checkpoints(self, slug: str) -> Iterator[CheckpointOut]:
        """A signed checkpoint of each account, for a witness."""
        return cast("Iterator[CheckpointOut]", self.site.listed(f"projects/{quoted(str(slug))}/ledger/checkpoints"))

    def get_consistency(
        self, slug: str, *, account: str | None = None, old: int | None = None, size: int | None = None
    ) -> ConsistencyOut:
        """What shows that an account's log grew from one checkpoint to another."""
        return cast(
            "ConsistencyOut",
            self.site.call(
                "GET",
                f"projects/{quoted(str(slug))}/ledger/consistency",
                query={"account": account, "old": old, "size": size},
            ),
        )

    def get_inclusion(
        self, slug: str, *, account: str | None = None, sequence: int | None = None, size: int | None = None
    ) -> InclusionOut:
        """What shows that an entry is in an account's log."""
        return cast(
            "InclusionOut",
            self.site.call(
                "GET",
                f"projects/{quoted(str(slug))}/ledger/inclusion",
                query={"account": account, "sequence": sequence, "size": size},
            ),
        )

    def list_accounts(self, slug: str) -> Iterator[AccountOut]:
        """Accounts with limits and spending."""
        return cast("Iterator[AccountOut]", self.site.listed(f"projects/{quoted(str(slug))}/ledger"))

    def list_entries(self, slug: str, *, account: str | None = None, after: int | None = None) -> Iterator[EntryOut]:
        """Every entry, oldest first."""
        return cast(
            "Iterator[EntryOut]",
            self.site.listed(
                f"projects/{quoted(str(slug))}/ledger/entries", query={"account": account, "after": after}
            ),
        )

    def get_statement(self, slug: str) -> Iterator[bytes]:
        """Every entry with the audit's verdict, for an auditor."""
        return self.site.streamed(f"projects/{quoted(str(slug))}/ledger/statement")

    def list_limit_requests(self, slug: str) -> Iterator[LimitRequestOut]:
        """What waits for a second manager and what became of the rest, newest first."""
        return cast("Iterator[LimitRequestOut]", self.site.listed(f"projects/{quoted(str(slug))}/ledger/limits"))

    def change_limit(self, slug: str, body: LimitIn, *, key: str = "") -> LimitOut:
        """Change the limit of an account, or ask another manager for a higher one."""
        return cast(
            "LimitOut", self.site.call("POST", f"projects/{quoted(str(slug))}/ledger/limits", body=body, key=key)
        )

    def decide_limit(self, slug: str, request_id: str, body: LimitDecisionIn, *, key: str = "") -> LimitRequestOut:
        """Approve, refuse or withdraw what waits for a second manager."""
        return cast(
            "LimitRequestOut",
            self.site.call(
                "POST", f"projects/{quoted(str(slug))}/ledger/limits/{quoted(str(request_id))}", body=body, key=key
            ),
        )

    def get_second_manager(self, slug: str) -> SecondManagerOut:
        """Whether a higher limit needs a second manager."""
        return cast("SecondManagerOut", self.site.call("GET", f"projects/{quoted(str(slug))}/second-manager"))

    def set_second_manager(self, slug: str, body: SecondManagerIn, *, key: str = "") -> SecondManagerOut:
        """Let a higher limit need a second manager, or ask one to give that up."""
        return cast(
            "SecondManagerOut",
            self.site.call("POST", f"projects/{quoted(str(slug))}/second-manager", body=body, key=key),
        )

    def list_actions(
        self,
        slug: str,
        *,
        who: str | None = None,
        route: str | None = None,
        since: str | None | None = None,
        until: str | None | None = None,
    ) -> Iterator[ActionOut]:
        """Who did what in a project, newest first."""
        return cast(
            "Iterator[ActionOut]",
            self.site.listed(
                f"projects/{quoted(str(slug))}/log", query={"who": who, "route": route, "since": since, "until": until}
            ),
        )

    def list_populations(self) -> list[PopulationOut]:
        """The populations one manages."""
        return cast("list[PopulationOut]", self.site.call("GET", "populations"))

    def open_population(self, body: PopulationIn, *, key: str = "") -> PopulationOut:
        """Open a population."""
        return cast("PopulationOut", self.site.call("POST", "populations", body=body, key=key))

    def get_population(self, population: str) -> PopulationOut:
        """A population and what its projects took."""
        return cast("PopulationOut", self.site.call("GET", f"populations/{quoted(str(population))}"))

    def list_population_checkpoints(self, population: str) -> list[CheckpointOut]:
        """A signed checkpoint of the common account, for a witness."""
        return cast(
            "list[CheckpointOut]", self.site.call("GET", f"populations/{quoted(str(population))}/ledger/checkpoints")
        )

    def get_population_consistency(
        self, population: str, *, account: str | None = None, old: int | None = None, size: int | None = None
    ) -> ConsistencyOut:
        """What shows that the common account's log grew from one checkpoint to another."""
        return cast(
            "ConsistencyOut",
            self.site.call(
                "GET",
                f"populations/{quoted(str(population))}/ledger/consistency",
                query={"account": account, "old": old, "size": size},
            ),
        )

    def get_population_statement(self, population: str) -> Iterator[bytes]:
        """Every entry of the common account with the audit's verdict, for an auditor."""
        return self.site.streamed(f"populations/{quoted(str(population))}/ledger/statement")

    def join_population(self, slug: str, body: MemberIn, *, key: str = "") -> PopulationOut:
        """Let a project join a population for good, with what it has spent."""
        return cast(
            "PopulationOut", self.site.call("POST", f"projects/{quoted(str(slug))}/population", body=body, key=key)
        )

    def change_common_limit(self, population: str, body: CommonLimitIn, *, key: str = "") -> CommonLimitOut:
        """Lower the common limit, or ask another manager for a higher one."""
        return cast(
            "CommonLimitOut", self.site.call("POST", f"populations/{quoted(str(population))}/limit", body=body, key=key)
        )

    def list_population_managers(self, population: str) -> list[str]:
        """Who manages a population, by name."""
        return cast("list[str]", self.site.call("GET", f"populations/{quoted(str(population))}/managers"))

    def ask_for_population_manager(self, population: str, body: AppointmentIn, *, key: str = "") -> WishOut:
        """Ask another manager to agree to a further one."""
        return cast(
            "WishOut", self.site.call("POST", f"populations/{quoted(str(population))}/managers", body=body, key=key)
        )

    def list_wishes(self, population: str) -> list[WishOut]:
        """What waits for another manager, newest first."""
        return cast("list[WishOut]", self.site.call("GET", f"populations/{quoted(str(population))}/wishes"))

    def decide_wish(self, population: str, wish_id: str, body: WishDecisionIn, *, key: str = "") -> None:
        """Approve, refuse or withdraw what was asked for."""
        self.site.call(
            "POST", f"populations/{quoted(str(population))}/wishes/{quoted(str(wish_id))}", body=body, key=key
        )

    def list_members(self, slug: str) -> list[MembershipOut]:
        """Who takes part, role by role."""
        return cast("list[MembershipOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/members"))

    def add_member(self, slug: str, body: MembershipIn, *, key: str = "") -> RoleGivenOut:
        """Give somebody a role, or ask another manager to agree to a further manager."""
        return cast("RoleGivenOut", self.site.call("POST", f"projects/{quoted(str(slug))}/members", body=body, key=key))

    def remove_member(self, slug: str, membership_id: str) -> None:
        """Take a role from somebody; what they labelled stays."""
        self.site.call("DELETE", f"projects/{quoted(str(slug))}/members/{quoted(str(membership_id))}")

    def list_group_roles(self, slug: str) -> GroupRolesOut:
        """Roles of groups, and what groups there are."""
        return cast("GroupRolesOut", self.site.call("GET", f"projects/{quoted(str(slug))}/groups"))

    def give_group_role(self, slug: str, body: GroupRoleIn, *, key: str = "") -> GroupRoleOut:
        """Give everybody of a group a role."""
        return cast("GroupRoleOut", self.site.call("POST", f"projects/{quoted(str(slug))}/groups", body=body, key=key))

    def take_group_role(self, slug: str, given_id: str) -> None:
        """Take a role from a group; who has it by nothing else is out."""
        self.site.call("DELETE", f"projects/{quoted(str(slug))}/groups/{quoted(str(given_id))}")

    def list_invitations(self, slug: str) -> list[InvitationOut]:
        """Invitations that let somebody in."""
        return cast("list[InvitationOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/invitations"))

    def make_invitation(self, slug: str, body: InvitationIn) -> InvitationMadeOut:
        """Make an invitation, and send it by mail if it names an address."""
        return cast("InvitationMadeOut", self.site.call("POST", f"projects/{quoted(str(slug))}/invitations", body=body))

    def revoke_invitation(self, slug: str, invitation_id: str) -> None:
        """End an invitation; who came by it stays."""
        self.site.call("DELETE", f"projects/{quoted(str(slug))}/invitations/{quoted(str(invitation_id))}")

    def list_crowd_links(self, slug: str) -> list[CrowdLinkOut]:
        """Links for crowd platforms that are open."""
        return cast("list[CrowdLinkOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/crowd-links"))

    def make_crowd_link(self, slug: str, body: CrowdLinkIn) -> CrowdLinkMadeOut:
        """Make a link for a crowd platform."""
        return cast("CrowdLinkMadeOut", self.site.call("POST", f"projects/{quoted(str(slug))}/crowd-links", body=body))

    def revoke_crowd_link(self, slug: str, link_id: str) -> None:
        """Let nobody new in by a link; who is in finishes."""
        self.site.call("DELETE", f"projects/{quoted(str(slug))}/crowd-links/{quoted(str(link_id))}")

    def list_groups(self) -> list[GroupOut]:
        """Groups of people of the site."""
        return cast("list[GroupOut]", self.site.call("GET", "groups"))

    def make_group(self, body: GroupIn, *, key: str = "") -> GroupOut:
        """Make an empty group."""
        return cast("GroupOut", self.site.call("POST", "groups", body=body, key=key))

    def get_group(self, group_id: str) -> WholeGroupOut:
        """One group, its people and its roles."""
        return cast("WholeGroupOut", self.site.call("GET", f"groups/{quoted(str(group_id))}"))

    def rename_group(self, group_id: str, body: GroupIn, *, key: str = "") -> GroupOut:
        """Give a group another name."""
        return cast("GroupOut", self.site.call("PATCH", f"groups/{quoted(str(group_id))}", body=body, key=key))

    def delete_group(self, group_id: str, body: GroupDeletionIn) -> None:
        """End a group, and what it gave."""
        self.site.call("POST", f"groups/{quoted(str(group_id))}/deletion", body=body)

    def add_group_people(self, group_id: str, body: GroupPeopleIn, *, key: str = "") -> PeopleChangedOut:
        """Put people into a group, which gives them its roles."""
        return cast(
            "PeopleChangedOut", self.site.call("POST", f"groups/{quoted(str(group_id))}/people", body=body, key=key)
        )

    def remove_group_people(self, group_id: str, body: GroupPeopleIn, *, key: str = "") -> PeopleChangedOut:
        """Take people out of a group; who has a role by nothing else is out, and what they labelled stays."""
        return cast(
            "PeopleChangedOut",
            self.site.call("POST", f"groups/{quoted(str(group_id))}/people/removal", body=body, key=key),
        )

    def remove_from_group(self, group_id: str, place_id: str) -> None:
        """Take one person out of a group, whatever has become of their account."""
        self.site.call("DELETE", f"groups/{quoted(str(group_id))}/people/{quoted(str(place_id))}")

    def list_group_invitations(self, group_id: str) -> list[GroupInvitationOut]:
        """Invitations that let somebody into a group."""
        return cast("list[GroupInvitationOut]", self.site.call("GET", f"groups/{quoted(str(group_id))}/invitations"))

    def make_group_invitation(self, group_id: str, body: MailedIn) -> GroupInvitationMadeOut:
        """Make an invitation into a group, and send it by mail if it names an address."""
        return cast(
            "GroupInvitationMadeOut", self.site.call("POST", f"groups/{quoted(str(group_id))}/invitations", body=body)
        )

    def revoke_group_invitation(self, group_id: str, invitation_id: str) -> None:
        """End an invitation into a group; who came by it stays."""
        self.site.call("DELETE", f"groups/{quoted(str(group_id))}/invitations/{quoted(str(invitation_id))}")

    def get_mails(self) -> MailsOut:
        """What the caller is told by mail."""
        return cast("MailsOut", self.site.call("GET", "mails"))

    def choose_mails(self, body: MailsIn, *, key: str = "") -> MailsOut:
        """Choose what the caller is told by mail; the next mails follow it."""
        return cast("MailsOut", self.site.call("PATCH", "mails", body=body, key=key))

    def get_gate(
        self,
        slug: str,
        *,
        epsilon: float | None | None = None,
        delta: float | None | None = None,
        source: str | None = None,
        records: int | None | None = None,
        different_texts: int | None | None = None,
        most_frequent: int | None | None = None,
    ) -> GatePlanOut:
        """The gate, its price, and others at a price."""
        return cast(
            "GatePlanOut",
            self.site.call(
                "GET",
                f"projects/{quoted(str(slug))}/gate",
                query={
                    "epsilon": epsilon,
                    "delta": delta,
                    "source": source,
                    "records": records,
                    "different_texts": different_texts,
                    "most_frequent": most_frequent,
                },
            ),
        )

    def choose_gate(self, slug: str, body: GateIn, *, key: str = "") -> None:
        """Choose the gate, while nothing is charged for the one that stands."""
        self.site.call("POST", f"projects/{quoted(str(slug))}/gate", body=body, key=key)

    def survey_dataset(self, slug: str, dataset_id: str, *, key: str = "") -> JobOut:
        """Have a worker count a whole upload for the plan of the gate; nothing is charged."""
        return cast(
            "JobOut",
            self.site.call("POST", f"projects/{quoted(str(slug))}/datasets/{quoted(str(dataset_id))}/survey", key=key),
        )

    def list_checks(self, slug: str) -> Iterator[CheckOut]:
        """Hidden checks in use, those answered wrongly most often first."""
        return cast("Iterator[CheckOut]", self.site.listed(f"projects/{quoted(str(slug))}/checks"))

    def add_checks(self, slug: str, body: ChecksIn, *, key: str = "") -> ChecksAddedOut:
        """Make hidden checks from labelled public examples."""
        return cast(
            "ChecksAddedOut", self.site.call("POST", f"projects/{quoted(str(slug))}/checks", body=body, key=key)
        )

    def retire_check(self, slug: str, check_id: str) -> None:
        """Show a check to nobody any more; answers to it count against nobody."""
        self.site.call("DELETE", f"projects/{quoted(str(slug))}/checks/{quoted(str(check_id))}")

    def get_check_image(self, slug: str, check_id: str) -> Iterator[bytes]:
        """The picture that a hidden check is about."""
        return self.site.streamed(f"projects/{quoted(str(slug))}/checks/{quoted(str(check_id))}/image")

    def list_annotators(self, slug: str) -> list[AnnotatorOut]:
        """Everybody's answers and their checks."""
        return cast("list[AnnotatorOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/annotators"))

    def list_payments(self, slug: str) -> Iterator[PaymentOut]:
        """Who is to be paid what, by accepted answers."""
        return cast("Iterator[PaymentOut]", self.site.listed(f"projects/{quoted(str(slug))}/payments"))

    def get_own_statistics(self, slug: str) -> OwnStatisticsOut:
        """What the caller answered, how they did at checks, and what they earned."""
        return cast("OwnStatisticsOut", self.site.call("GET", f"projects/{quoted(str(slug))}/statistics"))

    def pause_member(self, slug: str, membership_id: str, *, key: str = "") -> None:
        """Ask an annotator nothing further; what they hold they may still answer."""
        self.site.call("POST", f"projects/{quoted(str(slug))}/members/{quoted(str(membership_id))}/pause", key=key)

    def resume_member(self, slug: str, membership_id: str) -> None:
        """Let an annotator go on; checks from before no longer count against them."""
        self.site.call("DELETE", f"projects/{quoted(str(slug))}/members/{quoted(str(membership_id))}/pause")

    def get_agreement(self, slug: str) -> AgreementOut:
        """The last comparison of all answers."""
        return cast("AgreementOut", self.site.call("GET", f"projects/{quoted(str(slug))}/agreement"))

    def compare_answers(self, slug: str, *, key: str = "") -> AgreementOut:
        """Have a worker compare all answers as they stand."""
        return cast("AgreementOut", self.site.call("POST", f"projects/{quoted(str(slug))}/agreement", key=key))

    def list_opinions(self, slug: str, *, after: int | None = None) -> Iterator[OpinionOut]:
        """What the last comparison takes each question for."""
        return cast(
            "Iterator[OpinionOut]", self.site.listed(f"projects/{quoted(str(slug))}/opinions", query={"after": after})
        )

    def get_guidelines(self, slug: str) -> GuidelinesOut:
        """What annotators are told, as they read it."""
        return cast("GuidelinesOut", self.site.call("GET", f"projects/{quoted(str(slug))}/guidelines"))

    def write_guidelines(self, slug: str, body: GuidelinesIn, *, key: str = "") -> GuidelinesSavedOut:
        """Write a version of the guidelines; annotators are told of it once."""
        return cast(
            "GuidelinesSavedOut", self.site.call("POST", f"projects/{quoted(str(slug))}/guidelines", body=body, key=key)
        )

    def read_guidelines(self, slug: str, *, key: str = "") -> None:
        """Note that the caller knows the version that stands."""
        self.site.call("POST", f"projects/{quoted(str(slug))}/guidelines/read", key=key)

    def undo_last(self, slug: str, *, key: str = "") -> AssignmentOut | None:
        """Take back one's last answer, skip or flag, and hold its question again; 204 where it waits."""
        return cast(
            "AssignmentOut | None", self.site.call("POST", f"projects/{quoted(str(slug))}/assignments/undo", key=key)
        )

    def flag_assignment(self, assignment_id: str, body: FlagIn, *, key: str = "") -> None:
        """Report a question as broken or sensitive instead of answering it."""
        self.site.call("POST", f"assignments/{quoted(str(assignment_id))}/flag", body=body, key=key)

    def list_own_answers(
        self, slug: str, *, before: int | None | None = None, unread: bool | None = None
    ) -> OwnAnswersOut:
        """The caller's own answers, and which may be changed."""
        return cast(
            "OwnAnswersOut",
            self.site.call("GET", f"projects/{quoted(str(slug))}/answers", query={"before": before, "unread": unread}),
        )

    def correct_answer(self, assignment_id: str, body: LabelIn, *, key: str = "") -> LabelOut:
        """Put another answer in the place of one's own, or confirm it."""
        return cast(
            "LabelOut",
            self.site.call("POST", f"assignments/{quoted(str(assignment_id))}/correction", body=body, key=key),
        )

    def list_set_aside(self, slug: str) -> list[SetAsideOut]:
        """Questions nobody gets further with, the oldest 200."""
        return cast("list[SetAsideOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/set-aside"))

    def decide_set_aside(self, slug: str, query_id: str, body: SetAsideDecisionIn, *, key: str = "") -> None:
        """Have a question asked again, or leave it out for good."""
        self.site.call("POST", f"projects/{quoted(str(slug))}/set-aside/{quoted(str(query_id))}", body=body, key=key)

    def list_reports(self, slug: str) -> list[ReportOut]:
        """What annotators say about other questions, the oldest 200."""
        return cast("list[ReportOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/reports"))

    def resolve_report(self, slug: str, report_id: str) -> None:
        """Take a report off the list; it stays stored."""
        self.site.call("DELETE", f"projects/{quoted(str(slug))}/reports/{quoted(str(report_id))}")

    def list_studies(self, slug: str) -> list[StudyOut]:
        """The project's studies on Prolific."""
        return cast("list[StudyOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/studies"))

    def open_study(self, slug: str, body: StudyIn, *, key: str = "") -> StudyOut:
        """Open a study's draft on Prolific, within the project's limit in money."""
        return cast("StudyOut", self.site.call("POST", f"projects/{quoted(str(slug))}/studies", body=body, key=key))

    def get_platform(self, slug: str) -> PlatformOut:
        """The account that studies are paid from."""
        return cast("PlatformOut", self.site.call("GET", f"projects/{quoted(str(slug))}/studies/account"))

    def connect_platform(self, slug: str, body: PlatformIn, *, key: str = "") -> PlatformOut:
        """Store the token that studies are opened with, in the place of an earlier one."""
        return cast(
            "PlatformOut", self.site.call("POST", f"projects/{quoted(str(slug))}/studies/account", body=body, key=key)
        )

    def disconnect_platform(self, slug: str) -> None:
        """Forget the token."""
        self.site.call("DELETE", f"projects/{quoted(str(slug))}/studies/account")

    def get_study(self, slug: str, study_id: str) -> StudyDetailOut:
        """One study and who came."""
        return cast(
            "StudyDetailOut", self.site.call("GET", f"projects/{quoted(str(slug))}/studies/{quoted(str(study_id))}")
        )

    def change_study(self, slug: str, study_id: str, body: StudyChangeIn, *, key: str = "") -> StudyDetailOut:
        """Move a study on, approve who is complete, look now, or forget who came."""
        return cast(
            "StudyDetailOut",
            self.site.call(
                "POST", f"projects/{quoted(str(slug))}/studies/{quoted(str(study_id))}/changes", body=body, key=key
            ),
        )

    def decide_participation(self, slug: str, study_id: str, body: ParticipationDecisionIn, *, key: str = "") -> None:
        """Reject a participation, or ask for its return."""
        self.site.call(
            "POST", f"projects/{quoted(str(slug))}/studies/{quoted(str(study_id))}/decisions", body=body, key=key
        )

    def give_bonuses(self, slug: str, study_id: str, body: BonusesIn, *, key: str = "") -> None:
        """Give bonuses, once under their key."""
        self.site.call(
            "POST", f"projects/{quoted(str(slug))}/studies/{quoted(str(study_id))}/bonuses", body=body, key=key
        )

    def settle_bonuses(self, slug: str, study_id: str, body: SettledIn, *, key: str = "") -> None:
        """Say whether unclear bonuses came."""
        self.site.call(
            "POST", f"projects/{quoted(str(slug))}/studies/{quoted(str(study_id))}/bonuses/settle", body=body, key=key
        )

    def list_models(self, slug: str) -> Iterator[ModelOut]:
        """Released models, newest first."""
        return cast("Iterator[ModelOut]", self.site.listed(f"projects/{quoted(str(slug))}/models"))

    def get_model(self, slug: str, version: int | str) -> ModelOut:
        """One released model, the latest, or version 0."""
        return cast("ModelOut", self.site.call("GET", f"projects/{quoted(str(slug))}/models/{quoted(str(version))}"))

    def get_file(self, slug: str, version: int | str, name: str) -> Iterator[bytes]:
        """A file of a released model."""
        return self.site.streamed(
            f"projects/{quoted(str(slug))}/models/{quoted(str(version))}/files/{quoted(str(name))}"
        )

    def predict(self, slug: str, version: int | str, body: PredictIn) -> PredictOut:
        """Try a released model on a few records."""
        return cast(
            "PredictOut",
            self.site.call("POST", f"projects/{quoted(str(slug))}/models/{quoted(str(version))}/predict", body=body),
        )

    def list_rounds(self, slug: str) -> Iterator[RoundOut]:
        """How questions were chosen, newest first."""
        return cast("Iterator[RoundOut]", self.site.listed(f"projects/{quoted(str(slug))}/rounds"))

    def list_channels(self, slug: str) -> Iterator[ChannelOut]:
        """Which version each channel is."""
        return cast("Iterator[ChannelOut]", self.site.listed(f"projects/{quoted(str(slug))}/channels"))

    def move_channel(self, slug: str, channel: str, body: MoveIn, *, key: str = "") -> ChannelOut:
        """Move a channel to a version, with a reason."""
        return cast(
            "ChannelOut",
            self.site.call("POST", f"projects/{quoted(str(slug))}/channels/{quoted(str(channel))}", body=body, key=key),
        )

    def roll_back_channel(self, slug: str, channel: str, body: ReasonIn, *, key: str = "") -> ChannelOut:
        """Move a channel back to the version it was before, with a reason."""
        return cast(
            "ChannelOut",
            self.site.call(
                "POST", f"projects/{quoted(str(slug))}/channels/{quoted(str(channel))}/rollback", body=body, key=key
            ),
        )

    def retire_model(self, slug: str, version: int | str, body: ReasonIn, *, key: str = "") -> RetiredOut:
        """Take a version back, with a reason."""
        return cast(
            "RetiredOut",
            self.site.call(
                "POST", f"projects/{quoted(str(slug))}/models/{quoted(str(version))}/retire", body=body, key=key
            ),
        )

    def check_again(self, slug: str, version: int | str, *, key: str = "") -> CheckedOut:
        """Have a version that is held back checked again."""
        return cast(
            "CheckedOut",
            self.site.call("POST", f"projects/{quoted(str(slug))}/models/{quoted(str(version))}/check", key=key),
        )

    def endorse_model(self, slug: str, version: int | str, body: ReasonIn, *, key: str = "") -> EndorsedOut:
        """Offer a version that does not beat a constant all the same, with a reason."""
        return cast(
            "EndorsedOut",
            self.site.call(
                "POST", f"projects/{quoted(str(slug))}/models/{quoted(str(version))}/endorse", body=body, key=key
            ),
        )

    def get_model_difference(self, slug: str, version: int | str, before: int | str) -> ModelDifferenceOut:
        """What differs between two versions."""
        return cast(
            "ModelDifferenceOut",
            self.site.call(
                "GET", f"projects/{quoted(str(slug))}/models/{quoted(str(version))}/differences/{quoted(str(before))}"
            ),
        )

    def set_archived(self, slug: str, body: ArchivedIn, *, key: str = "") -> ProjectOut:
        """Put a project into the archive, or take it out, paused."""
        return cast("ProjectOut", self.site.call("POST", f"projects/{quoted(str(slug))}/archive", body=body, key=key))

    def get_deletion(self, slug: str) -> DeletionOut:
        """What deleting leaves, and how far erasing is."""
        return cast("DeletionOut", self.site.call("GET", f"projects/{quoted(str(slug))}/deletion"))

    def delete_project(self, slug: str, body: DeletionIn, *, key: str = "") -> DeletionOut:
        """Delete a project for good; a job erases what there is."""
        return cast("DeletionOut", self.site.call("POST", f"projects/{quoted(str(slug))}/deletion", body=body, key=key))

    def list_webhooks(self, slug: str) -> list[WebhookOut]:
        """The project's webhooks."""
        return cast("list[WebhookOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/webhooks"))

    def add_webhook(self, slug: str, body: WebhookIn) -> WebhookAddedOut:
        """Add a webhook; the answer alone shows its secret, and no key repeats it."""
        return cast("WebhookAddedOut", self.site.call("POST", f"projects/{quoted(str(slug))}/webhooks", body=body))

    def list_deliveries(self, slug: str) -> Iterator[DeliveryOut]:
        """Messages to webhooks, newest first."""
        return cast("Iterator[DeliveryOut]", self.site.listed(f"projects/{quoted(str(slug))}/webhooks/deliveries"))

    def send_webhook_again(self, slug: str, delivery_id: str, *, key: str = "") -> DeliveryOut:
        """Send a message once more."""
        return cast(
            "DeliveryOut",
            self.site.call(
                "POST", f"projects/{quoted(str(slug))}/webhooks/deliveries/{quoted(str(delivery_id))}", key=key
            ),
        )

    def remove_webhook(self, slug: str, webhook_id: str) -> None:
        """Send nothing more to an address."""
        self.site.call("DELETE", f"projects/{quoted(str(slug))}/webhooks/{quoted(str(webhook_id))}")

    def change_webhook(self, slug: str, webhook_id: str, body: WebhookChangeIn, *, key: str = "") -> WebhookOut:
        """Give a webhook another address or other events; its secret stays."""
        return cast(
            "WebhookOut",
            self.site.call(
                "PATCH", f"projects/{quoted(str(slug))}/webhooks/{quoted(str(webhook_id))}", body=body, key=key
            ),
        )

    def rotate_webhook_secret(self, slug: str, webhook_id: str) -> WebhookAddedOut:
        """Replace a webhook's secret; the answer alone shows it, and no key repeats it."""
        return cast(
            "WebhookAddedOut",
            self.site.call("POST", f"projects/{quoted(str(slug))}/webhooks/{quoted(str(webhook_id))}/secret"),
        )

    def close_block(self, slug: str, body: MostIn, *, key: str = "") -> ClosedBlockOut:
        """Close the open secret block before its time; what is not agreed on by then counts as empty."""
        return cast(
            "ClosedBlockOut",
            self.site.call("POST", f"projects/{quoted(str(slug))}/rounds/block/close", body=body, key=key),
        )

    def train_on_few(self, slug: str, body: MostIn, *, key: str = "") -> TrainingOut:
        """Train on what is there although it is less than the project declares for a model."""
        return cast(
            "TrainingOut", self.site.call("POST", f"projects/{quoted(str(slug))}/trainings", body=body, key=key)
        )

    def list_work(self, slug: str) -> list[WorkOut]:
        """The newest jobs, rounds and trainings, newest first."""
        return cast("list[WorkOut]", self.site.call("GET", f"projects/{quoted(str(slug))}/work"))

    def cancel_work(self, slug: str, kind: str, work_id: str, *, key: str = "") -> CancelledOut:
        """Have work stop at its next safe point; what it has reserved stays charged."""
        return cast(
            "CancelledOut",
            self.site.call(
                "POST", f"projects/{quoted(str(slug))}/work/{quoted(str(kind))}/{quoted(str(work_id))}/cancel", key=key
            ),
        )

    def retry_work(self, slug: str, kind: str, work_id: str, body: MostIn, *, key: str = "") -> StartedOut:
        """Start work anew that ended without a result; it reserves for itself what it costs."""
        return cast(
            "StartedOut",
            self.site.call(
                "POST",
                f"projects/{quoted(str(slug))}/work/{quoted(str(kind))}/{quoted(str(work_id))}/retry",
                body=body,
                key=key,
            ),
        )

    def get_comparison(self, slug: str) -> ComparisonOut:
        """Which project stands beside this one, and which could."""
        return cast("ComparisonOut", self.site.call("GET", f"projects/{quoted(str(slug))}/comparison"))

    def compare_projects(self, slug: str, body: ComparisonIn, *, key: str = "") -> ComparisonOut:
        """Show the releases of a project that asks at random beside this one's."""
        return cast(
            "ComparisonOut", self.site.call("POST", f"projects/{quoted(str(slug))}/comparison", body=body, key=key)
        )

    def list_dashboard_rows(
        self, slug: str, name: str
    ) -> Iterator[SpendingRowOut | PurposeRowOut | ReleaseRowOut | LabelDayOut | AnnotatorRowOut]:
        """Rows of the dashboard's table spending, purposes, releases, labels or annotators, in English."""
        return cast(
            "Iterator[SpendingRowOut | PurposeRowOut | ReleaseRowOut | LabelDayOut | AnnotatorRowOut]",
            self.site.listed(f"projects/{quoted(str(slug))}/dashboard/{quoted(str(name))}"),
        )

    def preview_forgetting_of(self, slug: str, body: ContributorIn) -> TracesOut:
        """What forgetting a contributor would erase."""
        return cast("TracesOut", self.site.call("POST", f"projects/{quoted(str(slug))}/forgettings/preview", body=body))

    def forget_contributor(self, slug: str, body: ContributorIn, *, key: str = "") -> ForgettingOut:
        """Forget a contributor; a job erases what there is."""
        return cast(
            "ForgettingOut", self.site.call("POST", f"projects/{quoted(str(slug))}/forgettings", body=body, key=key)
        )

    def list_forgettings(self, slug: str) -> Iterator[ForgettingOut]:
        """Requests to forget, newest first."""
        return cast("Iterator[ForgettingOut]", self.site.listed(f"projects/{quoted(str(slug))}/forgettings"))

    def get_next_step(self, slug: str) -> NextStepOut:
        """What a project waits for."""
        return cast("NextStepOut", self.site.call("GET", f"projects/{quoted(str(slug))}/next-step"))

    def get_plan(self, slug: str, *, records: int | None | None = None) -> PlanOut:
        """What the accounts still buy."""
        return cast("PlanOut", self.site.call("GET", f"projects/{quoted(str(slug))}/plan", query={"records": records}))

    def get_plan_rows(self, slug: str, *, records: int | None | None = None) -> PlanRowsOut:
        """Which settings a plan tries, and how they did."""
        return cast(
            "PlanRowsOut", self.site.call("GET", f"projects/{quoted(str(slug))}/plan/rows", query={"records": records})
        )

    def simulate_plan(self, slug: str, body: PlanIn, *, key: str = "") -> PlanRowsOut:
        """Try the settings on data about nobody; nothing is charged."""
        return cast(
            "PlanRowsOut", self.site.call("POST", f"projects/{quoted(str(slug))}/plan/simulation", body=body, key=key)
        )

    def use_plan(self, slug: str, body: UsePlanIn, *, key: str = "") -> ConfigurationOut:
        """Let the project have the settings of a row."""
        return cast(
            "ConfigurationOut", self.site.call("POST", f"projects/{quoted(str(slug))}/plan/use", body=body, key=key)
        )

    def get_evidence(self, slug: str) -> EvidenceOut:
        """What shows that the promise holds."""
        return cast("EvidenceOut", self.site.call("GET", f"projects/{quoted(str(slug))}/evidence"))

    def get_evaluation(self, slug: str) -> Iterator[bytes]:
        """The questions of NIST SP 800-226 with the project's answers, as Markdown."""
        return self.site.streamed(f"projects/{quoted(str(slug))}/evaluation")

    def get_operations(self) -> StandingOut:
        """Queues, and the work that waits, runs or failed lately."""
        return cast("StandingOut", self.site.call("GET", "operations/work"))

    def send_work_again(self, kind: str, work_id: str, *, key: str = "") -> ActedOut:
        """Hand work that nobody is at to a worker again."""
        return cast(
            "ActedOut",
            self.site.call("POST", f"operations/work/{quoted(str(kind))}/{quoted(str(work_id))}/send", key=key),
        )

    def stop_work(self, kind: str, work_id: str, *, key: str = "") -> ActedOut:
        """Have work stop at its next safe point; what it has reserved stays charged."""
        return cast(
            "ActedOut",
            self.site.call("POST", f"operations/work/{quoted(str(kind))}/{quoted(str(work_id))}/cancel", key=key),
        )
