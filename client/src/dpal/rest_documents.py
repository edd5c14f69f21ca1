"""What a site's REST interface takes and answers; written by `python -m tests.typed_client`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class AccountOut(TypedDict):
    scope: str
    unit: str
    adjacency: str
    filter: str
    epsilon_limit: float
    epsilon_spent: float
    delta_limit: float
    delta_spent: float
    entries: int
    chain_head: str


class AccuracyOut(TypedDict):
    dataset: str
    before: list[Any] | None
    after: list[Any] | None
    beside_before: BesideOut | None
    beside_after: BesideOut | None


class ActOut(TypedDict):
    kind: str
    label: str
    page: str
    route: str | None
    body: dict[str, Any] | None
    epsilon: float | None
    delta: float | None


class ActedOut(TypedDict):
    kind: str
    id: str


class ActionOut(TypedDict):
    when: str
    who: str
    what: str
    route: str
    target: dict[str, int]


Aggregation = Literal["majority", "dawid_skene", "mace"]


class AgreementOut(TypedDict):
    method: str
    answers: int
    questions: int
    alpha: float | None
    made_at: str | None
    job: JobOut


class AnnotatorOut(TypedDict):
    membership: int | None
    username: str
    answers: int
    accepted: int
    refused: int
    checks: int
    checks_right: int
    low: float
    high: float
    agreement: float | None
    is_warned: bool
    paused_at: str | None
    pause_reason: str


class AnnotatorRowOut(TypedDict):
    person: str
    answers: int
    like_the_majority: int
    unlike_the_majority: int
    checks_right: int
    checks_answered: int


class AppointmentIn(TypedDict):
    manager: str
    reason: str


class ArchivedIn(TypedDict):
    archived: bool


Arrival = Literal["pool", "stream"]


class AskedOut(TypedDict):
    version: int
    released_at: str | None
    checks: dict[str, str]
    code: str
    estimator: str
    asked_at: str | None
    trials: int | None
    charged: float | None
    bound: float | None


class AssignmentOut(TypedDict):
    id: str
    leased_until: str
    question: str
    classes: list[str]
    most_classes: NotRequired[int | None]
    none_allowed: NotRequired[bool]
    guess: str | None
    suggestion: NotRequired[str | None]
    suggestion_percent: NotRequired[int | None]
    text: str | None
    fields: dict[str, Any] | None
    image_url: str | None
    class_groups: NotRequired[list[ClassGroupOut]]
    class_colours: NotRequired[dict[str, str]]
    class_keys: NotRequired[dict[str, str]]
    merged: NotRequired[dict[str, str]]
    owner_id: NotRequired[str | None]
    metadata: NotRequired[dict[str, str | None] | None]


class AuditedFileOut(TypedDict):
    file: str
    about: str
    passed: int
    failed: int
    skipped: int


class AuditsOut(TypedDict):
    run: EvidenceRunOut
    trials: int
    files: list[AuditedFileOut]
    canaries: list[CanaryRunOut]


class BadRowOut(TypedDict):
    line: int
    column: str
    reason: str
    reason_as_code: NotRequired[SaidOut | None]


BadRows = Literal["keep_good", "refuse_all"]


class BesideIn(TypedDict):
    name: NotRequired[str | None]


class BesideOut(TypedDict):
    constant: float
    version_0: float | None
    macro_f1: float | None


class BonusIn(TypedDict):
    participant: str
    amount: float | str


class BonusSheetOut(TypedDict):
    key: str
    state: str
    fault: str


class BonusesIn(TypedDict):
    key: str
    bonuses: list[BonusIn]


class CanaryRunOut(TypedDict):
    name: str
    charged: float | None
    bound: float | None
    trials: int
    sent: int
    twins: int
    found: int


class CancelledOut(TypedDict):
    kind: str
    id: str
    state: str
    cancelled_by: str


class ChangeIn(TypedDict):
    action: Literal["set_aside", "send_back", "tag", "untag", "assign", "unassign"]
    questions: list[int]
    comment: NotRequired[str]
    tag: NotRequired[str]
    person: NotRequired[str]


class ChangeOut(TypedDict):
    name: str
    before: Any
    after: Any


class ChangedOut(TypedDict):
    changed: list[int]


class ChangedSettingOut(TypedDict):
    setting: str
    before: Any
    after: Any


class ChannelOut(TypedDict):
    channel: str
    version: int
    reason: str
    rolled_back: bool
    moved_at: str


class ChargeOut(TypedDict):
    epsilon: float
    delta: float


class CheckOut(TypedDict):
    check: int
    question: int
    source: GoldSource
    answer: str
    right: int
    wrong: int
    text: str | None
    fields: dict[str, Any] | None
    has_image: bool
    owner_id: str | None
    metadata: dict[str, str | None] | None


class CheckedOut(TypedDict):
    version: int
    state: str
    held_back: str


class CheckpointOut(TypedDict):
    account: str
    checkpoint: str


class ChecksAddedOut(TypedDict):
    added: int


class ChecksIn(TypedDict):
    dataset: int
    most: NotRequired[int]


class ChoiceOut(TypedDict):
    kind: str
    section: str
    name: str
    label: str
    help: str
    oracles: list[str]
    arrivals: list[str]
    data_kinds: list[str]
    missing: str
    parameters: dict[str, Any]


class ClassGroupOut(TypedDict):
    name: str
    classes: list[int]


class ClassIn(TypedDict):
    name: str
    words: NotRequired[list[str]]
    group: NotRequired[str]
    colour: NotRequired[str]
    known_beforehand: NotRequired[bool]


class ClassMeaningOut(TypedDict):
    name: str
    words: list[str]
    examples: list[str]


class ClosedBlockOut(TypedDict):
    block: int
    closes_at: str
    epsilon: float
    delta: float


class CommentIn(TypedDict):
    text: str


class CommentOut(TypedDict):
    annotator: str
    author: str | None
    kind: ReportKind
    text: str
    created_at: str
    read_at: NotRequired[str | None]


class CommentToIn(TypedDict):
    text: str
    annotator: str


class CommonLimitIn(TypedDict):
    epsilon_limit: float
    delta_limit: float
    reason: str


class CommonLimitOut(TypedDict):
    state: Literal["changed", "waiting"]


class ComparisonIn(TypedDict):
    beside: str | None


class ComparisonOut(TypedDict):
    beside: str | None
    choices: list[str]


class ConfigurationChangeOut(TypedDict):
    version: int
    when: str
    who: str
    settings: list[ChangedSettingOut]


class ConfigurationFileIO(TypedDict):
    format: str
    format_version: int
    preset: str
    settings: dict[str, Any]


class ConfigurationOut(TypedDict):
    version: int
    digest: str
    document: dict[str, dict[str, Any]]
    fixed: dict[str, str]


class ConsistencyOut(TypedDict):
    account: str
    old: int
    size: int
    hashes: list[str]


class ContributorIn(TypedDict):
    contributor: str


class CountOut(TypedDict):
    answer: str
    count: int


class CrowdLinkIn(TypedDict):
    platform: Platform
    study: NotRequired[str]
    answers_wanted: NotRequired[int]
    maximum_participants: NotRequired[int]
    days: NotRequired[int]
    signed: NotRequired[bool]


class CrowdLinkMadeOut(TypedDict):
    crowd_link: int
    platform: Platform
    study: str
    participants: int
    maximum_participants: int
    answers_wanted: int
    completion_code: str
    expires_at: str
    signed: bool
    address: str


class CrowdLinkOut(TypedDict):
    crowd_link: int
    platform: Platform
    study: str
    participants: int
    maximum_participants: int
    answers_wanted: int
    completion_code: str
    expires_at: str
    signed: bool


class DatasetOut(TypedDict):
    id: int
    name: str
    role: str
    state: str
    row_count: int | None
    bad_row_count: int | None
    bad_rows: list[BadRowOut]
    charge: NotRequired[ChargeOut | None]
    uploader_reason: NotRequired[str]
    uploader_reason_as_code: NotRequired[SaidOut | None]
    source: NotRequired[SourceOut | None]
    job: JobOut


DatasetRole = Literal["pool", "public_test", "public_start", "charged_start"]
Decision = Literal["settle", "return", "set_aside", "skip", "ask", "leave_out"]


class DecisionIn(TypedDict):
    decision: Decision
    choice: NotRequired[int | None]
    choices: NotRequired[list[int] | None]
    comment: NotRequired[str]
    keep_as_check: NotRequired[bool]


class DeletionIn(TypedDict):
    typed: str
    releases: NotRequired[Literal["keep", "bury"]]


class DeletionOut(TypedDict):
    state: str
    entries: int
    releases: int
    actions: int
    keeps_releases: bool | None
    deleted_by: str | None
    deleted_at: str | None
    erasing: str | None
    erased_at: str | None


class DeliveryOut(TypedDict):
    delivery: str
    webhook: int
    event: str
    subject: str
    state: str
    attempts: int
    url: str
    answer: str
    created_at: str
    sent_at: str | None


class DescriptionIn(TypedDict):
    name: NotRequired[str | None]
    question: NotRequired[str | None]
    lease_seconds: NotRequired[int | None]


class DescriptionOut(TypedDict):
    name: str
    question: str
    lease_seconds: int


class DifferenceOut(TypedDict):
    setting: str
    here: Any
    other: Any


class EncoderFileOut(TypedDict):
    name: str
    sha256: str
    bytes: int
    url: str


class EndorsedOut(TypedDict):
    version: int
    reason: str


class EntryOut(TypedDict):
    account: str
    sequence: int
    kind: str
    mechanism: str
    purpose: str
    subject: str
    actor: str
    reason: str
    approved_by: str
    epsilon_nano: int | None
    delta_atto: int
    rho_nano: int | None
    parent: int | None
    created_at: str
    hash: str
    output_digest: str


class EvaluationOut(TypedDict):
    dataset: str
    examples: int
    correct: int
    accuracy: float
    interval: list[Any]
    constant: float
    version_0: float | None
    no_privacy: NoPrivacyOut
    measures: MeasuresOut


class EvidenceOut(TypedDict):
    code: str
    readable: bool
    audits: AuditsOut | None
    faults: FaultsOut | None
    releases: list[AskedOut]


class EvidenceRunOut(TypedDict):
    command: str
    code: str
    began_at: str
    ended_at: str


ExportFormat = Literal["csv", "jsonl", "parquet", "label_studio", "croissant"]


class ExportIn(TypedDict):
    what: NotRequired[Literal["labels"]]
    format: NotRequired[ExportFormat]
    history: NotRequired[bool]


class ExportOut(TypedDict):
    format: str
    history: bool
    file: str | None
    size: int | None
    sha256: str | None
    expires_at: str | None


class FaultKindOut(TypedDict):
    kind: str
    listed: int
    planted: int
    noticed: int


class FaultsOut(TypedDict):
    run: EvidenceRunOut
    kinds: list[FaultKindOut]


class FileOut(TypedDict):
    name: str
    sha256: str
    url: str


class FlagIn(TypedDict):
    kind: Literal["broken", "sensitive"]
    comment: NotRequired[str]


class ForgettingOut(TypedDict):
    id: int
    reference: str
    actor: str
    job: str
    state: str
    created_at: str
    finished_at: str | None


class GateIn(TypedDict):
    gate_kind: str
    gate_epsilon: float
    gate_k: NotRequired[int | None]
    gate_sampling_rate: NotRequired[float | None]
    gate_delta: NotRequired[float | None]
    gate_floor: NotRequired[int | None]
    normalizer: NotRequired[str]


class GateOfferOut(TypedDict):
    settings: dict[str, Any]
    needed: int
    is_recommended: bool
    passing: PassingOut | None


class GatePlanIn(TypedDict):
    epsilon: NotRequired[float | None]
    delta: NotRequired[float | None]
    source: NotRequired[str]
    records: NotRequired[int | None]
    different_texts: NotRequired[int | None]
    most_frequent: NotRequired[int | None]


class GatePlanOut(TypedDict):
    settings: dict[str, Any]
    epsilon: float
    delta: float
    is_frozen: bool
    offers: list[GateOfferOut]
    is_private: bool
    job: JobOut | None


GoldSource = Literal["public", "asked"]


class GroupDeletionIn(TypedDict):
    typed: str


class GroupIn(TypedDict):
    name: str


class GroupInvitationMadeOut(TypedDict):
    invitation: int
    note: str
    uses: int
    maximum_uses: int
    expires_at: str
    mail: str
    link: str


class GroupInvitationOut(TypedDict):
    invitation: int
    note: str
    uses: int
    maximum_uses: int
    expires_at: str
    mail: str


class GroupOut(TypedDict):
    group: int
    name: str
    people: int
    projects: int


class GroupPeopleIn(TypedDict):
    people: list[str]


class GroupPlaceOut(TypedDict):
    project: str
    role: Role


class GroupRoleIn(TypedDict):
    group: str
    role: Role


class GroupRoleOut(TypedDict):
    given: int
    group: str
    role: Role
    people: int


class GroupRolesOut(TypedDict):
    given: list[GroupRoleOut]
    groups: list[str]


class GuidelineExampleIn(TypedDict):
    text: str
    choice: int
    reason: NotRequired[str]


class GuidelineExampleOut(TypedDict):
    text: str
    choice: int
    reason: str


class GuidelinePictureIn(TypedDict):
    description: str


class GuidelinePictureOut(TypedDict):
    digest: str
    description: str
    width: int
    height: int
    markdown: str
    added_at: str


class GuidelinesIn(TypedDict):
    text: str
    examples: NotRequired[list[GuidelineExampleIn]]


class GuidelinesOut(TypedDict):
    version: int
    text: str
    examples: list[GuidelineExampleOut]
    classes: list[ClassMeaningOut]


class GuidelinesSavedOut(TypedDict):
    version: int


class HeardIn(TypedDict):
    annotator: str


class InclusionOut(TypedDict):
    account: str
    sequence: int
    size: int
    hash: str
    hashes: list[str]
    checkpoint: str


class InvitationIn(TypedDict):
    maximum_uses: NotRequired[int]
    days: NotRequired[int]
    note: NotRequired[str]
    address: NotRequired[str]
    language: NotRequired[Literal["", "en", "de"]]
    role: Role


class InvitationMadeOut(TypedDict):
    invitation: int
    note: str
    uses: int
    maximum_uses: int
    expires_at: str
    mail: str
    role: Role
    link: str


class InvitationOut(TypedDict):
    invitation: int
    note: str
    uses: int
    maximum_uses: int
    expires_at: str
    mail: str
    role: Role


class JobOut(TypedDict):
    id: str
    kind: str
    state: str
    progress_done: int
    progress_total: int | None
    message: str
    message_as_code: NotRequired[SaidOut | None]
    error: str
    error_as_code: NotRequired[SaidOut | None]
    created_at: str
    finished_at: str | None
    export: NotRequired[ExportOut | None]


class KeptOut(TypedDict):
    kind: str
    days: int | None
    overdue: int
    next_at: str | None


Kind = Literal[
    "gate",
    "features",
    "strategy",
    "estimator",
    "policy",
    "randomizer",
    "classes",
    "suggestions",
    "machine",
    "label_type",
    "labelling",
    "budget",
    "releases",
    "stream",
]


class KindChangeOut(TypedDict):
    setting: str
    before: Any
    after: Any


class KindIn(TypedDict):
    oracle: Oracle
    arrival: Arrival
    privacy_unit: PrivacyUnit
    preset: NotRequired[str]
    labels_epsilon: NotRequired[float | None]


class KindPreviewOut(TypedDict):
    preset: str
    changes: list[KindChangeOut]
    why_not: list[str]
    why_not_as_code: list[SaidOut]


class LabelDayOut(TypedDict):
    day: str
    answers: int
    answers_so_far: int
    agreed: int
    unanimous: int


class LabelIn(TypedDict):
    choice: NotRequired[int | None]
    choices: NotRequired[list[int] | None]


class LabelOut(TypedDict):
    id: str
    choice: NotRequired[int | None]
    choices: NotRequired[list[int] | None]
    created_at: str


class LeasesOut(TypedDict):
    project: str
    wanted: int
    held: int
    oldest: str | None


class LimitDecisionIn(TypedDict):
    decision: Literal["approve", "refuse"]


class LimitIn(TypedDict):
    account: NotRequired[str]
    epsilon_limit: float
    delta_limit: float
    reason: str


class LimitOut(TypedDict):
    state: Literal["changed", "waiting"]
    request: int | None


class LimitRequestOut(TypedDict):
    request: int
    kind: str
    account: str | None
    epsilon_limit: float | None
    delta_limit: float | None
    appointee: str | None
    reason: str
    state: str
    requested_by: str
    requested_at: str
    expires_at: str
    decided_by: str | None
    decided_at: str | None


class LineageOut(TypedDict):
    account: str
    sequence: int
    kind: str
    subject: str
    purpose: str
    hash: str


class LogIn(TypedDict):
    limit: NotRequired[int]
    offset: NotRequired[int]
    who: NotRequired[str]
    route: NotRequired[str]
    since: NotRequired[str | None]
    until: NotRequired[str | None]


class LongWorkOut(TypedDict):
    kind: str
    id: str
    name: str
    project: str
    state: str
    attempt: int
    since: str
    trouble: str
    error: str
    error_as_code: SaidOut | None
    may_be_sent: bool


MailKind = Literal["returned", "remark", "questions", "review", "waiting", "release", "budget", "export"]


class MailedIn(TypedDict):
    maximum_uses: NotRequired[int]
    days: NotRequired[int]
    note: NotRequired[str]
    address: NotRequired[str]
    language: NotRequired[Literal["", "en", "de"]]


class MailsIn(TypedDict):
    wanted: NotRequired[list[MailKind] | None]
    often: NotRequired[Literal["now", "daily"] | None]
    language: NotRequired[str | None]
    zone: NotRequired[str | None]


class MailsOut(TypedDict):
    wanted: list[MailKind]
    often: Literal["now", "daily"]
    language: str
    zone: str
    address: str
    leaves_the_site: bool


class MeasureOut(TypedDict):
    value: float | None
    low: float | None
    high: float | None


class MeasuresOut(TypedDict):
    micro_f1: NotRequired[MeasureOut | None]
    macro_f1: NotRequired[MeasureOut | None]
    calibration_error: NotRequired[MeasureOut | None]
    reliability: NotRequired[list[dict[str, int | float | None]]]
    confusion: NotRequired[list[list[int]]]
    recall: NotRequired[list[RecallOut]]
    precision: NotRequired[list[RecallOut]]


class MemberIn(TypedDict):
    population: str
    records_per_person: NotRequired[int | None]


class MembershipIn(TypedDict):
    username: str
    role: Role


class MembershipOut(TypedDict):
    membership: int
    username: str
    role: Role
    is_direct: bool
    groups: list[str]
    labels: int
    is_machine: bool


class MergeIn(TypedDict):
    name: str
    into: str
    known_beforehand: NotRequired[bool]


class MergedIn(TypedDict):
    name: str


class ModelDifferenceOut(TypedDict):
    before: int
    after: int
    classes_added: list[str]
    classes_removed: list[str]
    guarantee: list[ChangeOut]
    accuracy: list[AccuracyOut]
    configuration: list[ChangeOut]
    environment: list[ChangeOut]
    weights_moved: float | None


class ModelOut(TypedDict):
    version: int
    state: str
    retired_reason: str
    checks: dict[str, str]
    checks_as_code: NotRequired[dict[str, SaidOut]]
    held_back: str
    held_back_as_code: NotRequired[SaidOut | None]
    beaten_by: str
    endorsement: str
    stopping: StoppingOut | None
    released_at: str | None
    estimator: str
    questions_asked: int | None
    pool_size: int | None
    sampling_rate: float | None
    rounds: list[int]
    created_at: str
    guarantee: list[TermsOut]
    configuration: dict[str, Any]
    environment: dict[str, str]
    public_key: str
    model_signing_key: str
    evaluations: list[EvaluationOut]
    files: list[FileOut]
    encoder: list[EncoderFileOut]
    lineage: list[LineageOut]


class MostIn(TypedDict):
    most_epsilon: NotRequired[float | None]


class MoveIn(TypedDict):
    version: int
    reason: str


class NextStepOut(TypedDict):
    step: str
    status: str
    status_as_code: SaidOut | None
    waits_for: str
    sentence: str
    sentence_as_code: SaidOut | None
    acts: list[ActOut]
    goes_on_at: str | None
    open: int
    done: int


class NoPrivacyOut(TypedDict):
    data: Literal["digits", "made_up"] | None
    labels: int | None
    accuracy: float | None
    macro_f1: float | None
    with_privacy: float | None
    said: str
    said_as_code: SaidOut | None


class OpinionOut(TypedDict):
    question: int
    owner_id: str | None
    answer: str
    probability: float
    method: Aggregation


class OpinionsIn(TypedDict):
    limit: NotRequired[int]
    offset: NotRequired[int]
    after: NotRequired[int]


Oracle = Literal["trusted", "crowd"]


class OwnAnswerOut(TypedDict):
    assignment: str
    text: str | None
    fields: dict[str, Any] | None
    image_url: str | None
    owner_id: str | None
    metadata: dict[str, str | None] | None
    guess: str | None
    answer: str
    choice: int | None
    choices: list[int] | None
    created_at: str
    may_change: bool


class OwnAnswersIn(TypedDict):
    before: NotRequired[int | None]
    unread: NotRequired[bool]


class OwnAnswersOut(TypedDict):
    answers: list[OwnAnswerOut]
    before: int | None


class OwnCommentOut(TypedDict):
    assignment: str
    kind: ReportKind
    from_manager: bool
    text: str
    created_at: str
    is_unread: bool


class OwnStatisticsOut(TypedDict):
    answered_today: int
    answered_in_seven_days: int
    answers: int
    accepted: int | None
    refused: int | None
    undecided: int | None
    skipped: int
    seconds: float | None
    checks: int
    checks_right: int
    low: float
    high: float
    is_warned: bool
    is_paused: bool
    pause_reason: PauseReason | None
    earned: str | None
    currency: str


ParticipationDecision = Literal["return", "reject"]


class ParticipationDecisionIn(TypedDict):
    participation: int
    decision: ParticipationDecision
    category: NotRequired[str]
    message: str


class ParticipationOut(TypedDict):
    participation: int
    participant: str | None
    state: str
    is_complete: bool
    is_paused: bool
    waits_for_decision: bool
    bonus: str


class PassingOut(TypedDict):
    texts: float
    text_share: float
    contribution_share: float


PauseReason = Literal["checks", "manager"]


class PaymentOut(TypedDict):
    username: str
    answers: int
    accepted: int
    refused: int
    undecided: int
    price: str | None
    amount: str | None
    currency: str


class PeopleChangedOut(TypedDict):
    changed: int
    people: int


class PlaceOut(TypedDict):
    place: int
    username: str
    since: str


class PlanIn(TypedDict):
    records: NotRequired[int | None]


class PlanOut(TypedDict):
    records: int
    uploads: int | None
    releases: int
    rounds: int
    labels: int
    questions: int
    label_limit: int | None
    choosing: float
    training: float
    whole: float | None


class PlanRowOut(TypedDict):
    number: int
    changes: dict[str, Any]
    price: float
    releases: int
    better: bool
    tried: list[TriedOut]


class PlanRowsOut(TypedDict):
    records: int
    fingerprint: str
    state: Literal["none", "waiting", "running", "done", "failed"]
    why_not: str
    left_out: str
    unreached: int
    rows: list[PlanRowOut]


Platform = Literal["prolific", "mturk"]


class PlatformIn(TypedDict):
    token: str
    fee_percent: float | str


class PlatformOut(TypedDict):
    is_connected: bool
    fee_percent: str | None
    currency: str
    fault: str
    fault_as_code: SaidOut | None


class PopulationIn(TypedDict):
    name: str
    unit: Literal["contributor", "record"]
    filter: Literal["pure", "zcdp"]
    epsilon_limit: float
    delta_limit: float
    second_manager: str


class PopulationOut(TypedDict):
    population: str
    name: str
    unit: str
    filter: str
    epsilon_limit: float
    delta_limit: float
    epsilon_spent: float
    delta_spent: float
    waiting: int
    members: list[ShareOut]


PopulationRequestKind = Literal["limit", "manager"]


class PredictIn(TypedDict):
    texts: NotRequired[list[str] | None]
    rows: NotRequired[list[dict[str, Any]] | None]


class PredictOut(TypedDict):
    version: int
    classes: list[str]
    labels: list[str] | list[list[str]]
    probabilities: list[list[float]]


PrivacyUnit = Literal["record", "contributor"]


class ProgressOut(TypedDict):
    reviewed: int
    waiting: int


class ProjectIn(TypedDict):
    format: str
    format_version: int
    preset: str
    settings: dict[str, Any]
    population: NotRequired[str | None]
    records_per_person: NotRequired[int | None]


class ProjectOut(TypedDict):
    slug: str
    name: str
    oracle: str
    data_kind: str
    classes: list[str]
    merged: NotRequired[dict[str, str]]
    state: str
    overlap: int


class PurposeRowOut(TypedDict):
    account: str
    by: str
    name: str
    operations: int
    epsilon: float
    rho: float
    delta: float
    percent: float


QueryState = Literal["unasked", "open", "gold", "closed", "disputed", "withdrawn", "set_aside", "in_review"]


class QuestionEventOut(TypedDict):
    when: str
    who: str | None
    what: Literal[
        "answered",
        "corrected",
        "taken_back",
        "skipped",
        "held",
        "agreed",
        "resolved",
        "broken",
        "sensitive",
        "comment",
        "returned",
        "reply",
        "read",
        "looked_again",
        "action",
    ]
    value: str | None


class QuestionOut(TypedDict):
    id: int
    state: QueryState
    round_number: int | None
    answers: list[CountOut]
    annotators: list[str]
    agreed: str | None
    reports: list[ReportKind]
    answered_at: str | None
    tags: list[str]
    assigned_to: str | None
    text: str | None
    fields: dict[str, Any] | None
    image_url: NotRequired[str | None]
    owner_id: NotRequired[str | None]
    metadata: NotRequired[dict[str, str | None] | None]
    events: list[QuestionEventOut]


class QuestionRowOut(TypedDict):
    id: int
    state: QueryState
    round_number: int | None
    answers: list[CountOut]
    annotators: list[str]
    agreed: str | None
    reports: list[ReportKind]
    answered_at: str | None
    tags: list[str]
    assigned_to: str | None
    text: str | None
    fields: dict[str, Any] | None
    image_url: NotRequired[str | None]
    owner_id: NotRequired[str | None]
    metadata: NotRequired[dict[str, str | None] | None]


class QuestionsIn(TypedDict):
    state: NotRequired[Literal["", "open", "closed", "disputed", "in_review", "withdrawn", "set_aside"]]
    choice: NotRequired[str]
    annotator: NotRequired[str]
    agreement: NotRequired[Literal["", "all", "divided"]]
    round_number: NotRequired[int | None]
    age: NotRequired[Literal["", "new1", "new7", "old7", "old30"]]
    flag: NotRequired[Literal["", "any", "talk", "broken", "sensitive", "comment", "returned", "reply"]]
    tag: NotRequired[str]
    assigned: NotRequired[str]
    text: NotRequired[str]
    before: NotRequired[int | None]


class QuestionsOut(TypedDict):
    questions: list[QuestionRowOut]
    before: int | None


class QueueOut(TypedDict):
    name: str
    waiting: int | None
    heard: str | None
    silent: bool


class ReasonIn(TypedDict):
    reason: str


class RecallOut(TypedDict):
    value: float | None
    low: float | None
    high: float | None
    correct: int
    examples: int


class RecordsOut(TypedDict):
    accepted: int
    first_slot: int


class ReleaseRowOut(TypedDict):
    project: str
    version: int
    test_set: str
    examples: int
    accuracy: float
    low: float
    high: float


ReportKind = Literal["broken", "sensitive", "comment", "returned", "reply"]


class ReportOut(TypedDict):
    report: int
    question: int
    annotator: str
    kind: ReportKind
    comment: str
    created_at: str


class RetentionIn(TypedDict):
    records_days: NotRequired[int | None]
    answers_days: NotRequired[int | None]
    comments_days: NotRequired[int | None]
    uploads_days: NotRequired[int | None]
    actions_days: NotRequired[int | None]


class RetiredOut(TypedDict):
    version: int
    state: str
    retired_reason: str


class ReviewOut(TypedDict):
    id: int
    leased_until: str
    question: str
    classes: list[str]
    text: str | None
    fields: dict[str, Any] | None
    image_url: str | None
    owner_id: str | None
    metadata: dict[str, str | None] | None
    guess: str | None
    votes: list[VotesOut]
    is_disputed: bool
    is_drawn: bool
    agreed: list[int] | None


Role = Literal["annotator", "manager", "engineer", "reviewer"]


class RoleGivenOut(TypedDict):
    state: Literal["given", "waiting"]


class RoundOut(TypedDict):
    number: int
    strategy: str
    state: str
    requested: int | None
    block: int | None
    pool_size: int | None
    sampling_rate: float | None
    closes_at: str | None
    selected: int | None
    model_version: int | None
    created_at: str
    finished_at: str | None
    error: str
    error_as_code: NotRequired[SaidOut | None]


class SaidOut(TypedDict):
    code: NotRequired[str | None]
    plural: NotRequired[str | None]
    parameters: NotRequired[dict[str, Any] | None]
    separator: NotRequired[str | None]
    messages: NotRequired[list[dict[str, Any]] | None]


class SecondManagerIn(TypedDict):
    needed: bool
    reason: NotRequired[str]


class SecondManagerOut(TypedDict):
    needed: bool
    request: NotRequired[int | None]


class SetAsideDecisionIn(TypedDict):
    decision: Literal["ask", "leave_out"]


class SetAsideOut(TypedDict):
    question: int
    round: int
    text: str | None
    skipped: list[SkippedOut]
    reports: list[ReportOut]


class SettingsIn(TypedDict):
    settings: dict[str, Any]


class SettledIn(TypedDict):
    came: bool


class ShareOut(TypedDict):
    account: str
    project: str
    records_per_person: int
    epsilon_limit: float
    epsilon_spent: float
    quota: float
    taken: float
    forecast: str


class SkipIn(TypedDict):
    reason: NotRequired[str]


class SkippedOut(TypedDict):
    reason: str
    people: int


class SourceOut(TypedDict):
    address: str
    snapshot: str
    iceberg_snapshot: NotRequired[int | None]


class SpendingRowOut(TypedDict):
    account: str
    when: str
    epsilon_spent: float
    epsilon_left: float
    epsilon_limit: float


class StandingOut(TypedDict):
    queues: list[QueueOut]
    broker_away: bool
    scanner_away: bool
    leases: list[LeasesOut]
    unfinished: list[LongWorkOut]
    failed: list[LongWorkOut]


class StartedOut(TypedDict):
    kind: str
    id: str
    state: str
    epsilon: float | None
    delta: float | None


class StateIn(TypedDict):
    state: Literal["active", "paused"]


class StoppingOut(TypedDict):
    stop: bool
    agreement: float
    threshold: float
    moved: float
    models_compared: int
    said: str
    said_as_code: SaidOut | None


StudyChange = Literal["publish", "pause", "start", "stop", "discard", "approve", "look", "forget"]


class StudyChangeIn(TypedDict):
    change: StudyChange


class StudyDetailOut(TypedDict):
    study: int
    name: str
    state: str
    wanted: str
    places: int
    places_taken: int
    approved: int
    minutes: int
    pay_per_place: str
    pay_per_hour: str
    cost_so_far: str
    promised_at_most: str
    fault: str
    fault_as_code: SaidOut | None
    followed_at: str | None
    changes: list[str]
    participations: list[ParticipationOut]
    bonuses: list[BonusSheetOut]


class StudyIn(TypedDict):
    name: str
    description: str
    places: int
    pay_per_place: float | str
    minutes: int
    answers_wanted: NotRequired[int]
    days: NotRequired[int]
    signed: NotRequired[bool]


class StudyOut(TypedDict):
    study: int
    name: str
    state: str
    wanted: str
    places: int
    places_taken: int
    approved: int
    minutes: int
    pay_per_place: str
    pay_per_hour: str
    cost_so_far: str
    promised_at_most: str
    fault: str
    fault_as_code: SaidOut | None
    followed_at: str | None


class TableIn(TypedDict):
    address: str
    name: NotRequired[str]
    text_column: NotRequired[str]
    contributor_column: NotRequired[str | None]
    snapshot_id: NotRequired[int | None]
    most_epsilon: NotRequired[float | None]


class TermsOut(TypedDict):
    protects: str
    filter: str
    unit: str
    adjacency: str
    limit_epsilon: float
    limit_delta: float
    spent_epsilon: float
    spent_delta: float


class TracesOut(TypedDict):
    records: int
    uploads: list[int]
    open_questions: int
    answers: int
    passed_gate: bool
    registered_tables: int
    releases: list[int]
    epsilon: float
    delta: float


class TrainingOut(TypedDict):
    version: int
    state: str
    epsilon: float
    delta: float


class TriedOut(TypedDict):
    data: Literal["digits", "made_up"]
    labels: int
    accuracy: float
    worst: float
    best: float
    macro_f1: float


class UploadIn(TypedDict):
    role: NotRequired[Literal["pool", "public_test", "public_start", "charged_start"]]
    bad_rows: NotRequired[Literal["keep_good", "refuse_all"]]
    text_column: NotRequired[str]
    contributor_column: NotRequired[str]
    label_column: NotRequired[str]
    has_header: NotRequired[bool]
    start_epsilon: NotRequired[float | None]
    most_epsilon: NotRequired[float | None]
    name: NotRequired[str]
    mapping: NotRequired[str]


class UsePlanIn(TypedDict):
    records: int
    fingerprint: str
    row: int


class ViewIn(TypedDict):
    name: str
    shared: NotRequired[bool]
    chosen: dict[str, str]


class ViewOut(TypedDict):
    id: int
    name: str
    owner: str
    shared: bool
    chosen: dict[str, str]


class VotesOut(TypedDict):
    answer: str
    people: int


class WebhookAddedOut(TypedDict):
    webhook: int
    url: str
    events: list[WebhookEvent]
    created_at: str
    secret: str


class WebhookChangeIn(TypedDict):
    url: NotRequired[str | None]
    events: NotRequired[list[WebhookEvent] | None]


WebhookEvent = Literal[
    "release",
    "budget",
    "round",
    "retired",
    "channel",
    "limit",
    "upload",
    "gate",
    "settings",
    "report",
    "review",
    "waiting",
    "failed",
    "member",
    "guidelines",
    "study",
    "request",
    "forgotten",
    "archived",
    "finished",
]


class WebhookIn(TypedDict):
    url: str
    events: list[WebhookEvent]


class WebhookOut(TypedDict):
    webhook: int
    url: str
    events: list[WebhookEvent]
    created_at: str


class WholeGroupOut(TypedDict):
    group: int
    name: str
    people: int
    projects: int
    members: list[PlaceOut]
    roles: list[GroupPlaceOut]


class WishDecisionIn(TypedDict):
    decision: Literal["approve", "refuse"]


class WishOut(TypedDict):
    wish: int
    kind: PopulationRequestKind
    manager: str | None
    epsilon_limit: float | None
    delta_limit: float | None
    reason: str
    asked_by: str
    is_own: bool
    asked_at: str
    expires_at: str


class WorkOut(TypedDict):
    kind: str
    id: str
    title: str
    state: str
    done: int
    total: int | None
    seconds_left: float | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancelled_by: str
    error: str
    error_as_code: SaidOut | None
    can_cancel: bool
    can_retry: bool
    epsilon: float | None
    delta: float | None
