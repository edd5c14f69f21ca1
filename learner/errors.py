"""Everything the learner refuses to do, by name."""

from privacy.wording import in_english, joined_messages


class LearnerError(Exception):
    """Base of all refusals of the learner; `status` is the HTTP status that fits."""

    status = 409


class NotEnoughLabels(LearnerError):
    """There is nothing to train on yet."""


class ArtifactCorrupt(LearnerError):
    """A stored file does not match its digest."""

    status = 500


class ExtraMissing(LearnerError):
    """This needs an optional library that is not installed."""


class EncoderMissing(ExtraMissing):
    """The weights a featuriser names are not installed, or are others than it was made with."""


class NothingToAsk(LearnerError):
    """No record and no gate output is left that was not asked before."""


class NothingWaits(LearnerError):
    """The version waits for no endorsement."""


class BlockNotOpen(LearnerError):
    """There is no secret block whose questions are being answered."""


class SharesRefused(LearnerError):
    """Shares of classes have no sound estimate in this project, or cannot be asked for now."""


class ReleaseBuried(LearnerError):
    """The release went with its project: what it promised is left, and its files are not."""

    status = 410


class NoVersionZero(LearnerError):
    """A project says nothing about its classes that its features could read."""


class CardNotIssued(LearnerError):
    """A limit cannot rise, because a card that prints it cannot be issued anew."""


class LimitsMoving(LearnerError):
    """A release was written several times, and each time a limit on its card rose before it was out."""


class ReasonMissing(LearnerError):
    """A step that cannot be undone needs a reason."""

    status = 422


class ChannelRefused(LearnerError):
    """A channel cannot be called that, or cannot be moved there."""

    status = 422


class InputNotFitting(LearnerError):
    """The records are of another kind than the project's."""

    status = 422


class NotReleased(LearnerError):
    """A release candidate has not passed the release gate, so nobody may have its files; what is retired stays so."""


def not_released(version: int, held_back: str) -> NotReleased:
    """Return the refusal of a release candidate's files, with what the release gate found where it has looked."""
    waits = in_english("Version {version} has not passed the release gate.", version=version)
    return NotReleased(joined_messages(" ", [waits, held_back]))


class UnknownChoice(LearnerError):
    """A stored name that no declared choice has."""

    status = 500
