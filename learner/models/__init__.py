"""Tables of the learner, one module a noun: features, rounds, trainings, streams, released models."""

# Django finds an app's tables here.
from learner.models import answers, planning, sums
from learner.models.features import FeatureMatrix
from learner.models.releases import (
    ChannelMove,
    Endorsement,
    Evaluation,
    MechanismAudit,
    ModelRelease,
    PrintedLimit,
    ReleaseState,
)
from learner.models.rounds import Round, SecretDraw
from learner.models.shares import Grouping, SharesReport
from learner.models.streams import Stream, StreamBatch
from learner.models.trainings import TrainingRun, WarmStart
