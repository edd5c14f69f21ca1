"""Tables of annotation."""

# Django finds what this module imports.
from annotation.models import (
    configurations,
    exports,
    history,
    imports,
    joining,
    letters,
    limits,
    pools,
    quality,
    retention,
)
from annotation.models.configurations import Configuration
from annotation.models.data import BadRows, Dataset, DatasetRole, DatasetState, Picture, Record, RecordPost
from annotation.models.gates import GateRun, GateState, Survey
from annotation.models.jobs import STREAM_JOB, UNFINISHED, DueLook, Job, LeasedWork, ProjectMove, WorkState
from annotation.models.kinds import Arrival, DataKind, Features, Oracle, PrivacyUnit, ProjectState, Selection
from annotation.models.people import ApiToken, Membership, Role
from annotation.models.pools import PoolPart, PoolSource, SourceFile
from annotation.models.projects import Project
from annotation.models.questions import (
    Assignment,
    AssignmentState,
    Consensus,
    Encounter,
    GuidelinePicture,
    Guidelines,
    Label,
    Query,
    QueryState,
    Report,
    ReportKind,
    SpanSet,
)
