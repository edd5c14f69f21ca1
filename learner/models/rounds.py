"""Rounds of questions, and what a secret one drew and looked at."""

from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Mod
from django.db.models.lookups import Exact, LessThanOrEqual
from django.utils.translation import gettext

from annotation.choices.catalogue import CATALOGUE
from annotation.models import Dataset, LeasedWork, Project, Selection
from privacy.choices import Kind
from privacy.message_fields import MessageField

# Coins and looks of an upload are stored in parts of so many rows, so no value grows with the pool.
PART_ROWS = 2**20


class Round(LeasedWork):
    project = models.ForeignKey(Project, models.CASCADE, related_name="rounds")
    number = models.PositiveIntegerField()
    strategy = models.CharField(max_length=30)
    model = models.ForeignKey("ModelRelease", models.PROTECT, null=True, blank=True, related_name="rounds")
    reservation = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, null=True, blank=True, related_name="+")
    committed_entry = models.OneToOneField(
        "privacy.LedgerEntry", models.PROTECT, null=True, blank=True, related_name="+"
    )
    block = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Which secret block, from 1.")
    closes_at = models.DateTimeField(null=True, blank=True, help_text="When a secret block is trained on.")
    requested = models.PositiveIntegerField(help_text="Questions wanted; of a secret block, records in the pool.")
    selected = models.PositiveIntegerField(null=True, blank=True)
    progress_done = models.PositiveIntegerField(db_default=0)
    progress_total = models.PositiveIntegerField(null=True, blank=True)
    message = MessageField(blank=True, help_text="What the attempt does now.")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "number"), name="learner_round_number"),
            models.UniqueConstraint(
                fields=("project",), condition=Q(state__in=("waiting", "running")), name="learner_round_one_open"
            ),
            models.CheckConstraint(
                name="learner_round_done",
                condition=~Q(state="done") | Q(committed_entry__isnull=False, selected__lte=F("requested")),
            ),
            models.UniqueConstraint(
                fields=("project", "block"), condition=~Q(state="failed"), name="learner_round_block_once"
            ),
            # A block that is asked about has a public time at which it closes. Which strategies ask in blocks, a
            # trigger knows, `learner_round_in_blocks`.
            models.CheckConstraint(
                name="learner_round_block_secret",
                # Compared with nothing, a number is unknown, and a rule that is unknown is kept.
                condition=Q(block__isnull=False, block__gte=1) & (~Q(state="done") | Q(closes_at__isnull=False))
                | Q(block=None, closes_at=None),
            ),
        )

    def __str__(self) -> str:
        return f"round {self.number} of {self.project_id}"

    @property
    def chosen_by(self) -> str:
        choice = CATALOGUE.find(Kind.STRATEGY, self.strategy)
        if choice is not None:
            return gettext(choice.label)
        again = self.strategy == Selection.REPEAT_VOTES
        return gettext("more answers to doubtful questions") if again else self.strategy


def _rows_of_a_part(name: str, content: str) -> tuple[models.BaseConstraint, ...]:
    size = Func(F(content), function="octet_length", output_field=models.IntegerField())
    at_edge = Exact(Mod(F("first_row"), Value(PART_ROWS)), 0)
    return (
        models.UniqueConstraint(name=f"{name}_one_a_part", fields=("dataset", "first_row")),
        models.CheckConstraint(
            name=f"{name}_part_within", condition=Q(first_row__gte=0) & at_edge & LessThanOrEqual(size, PART_ROWS)
        ),
    )


class SecretDraw(models.Model):
    """The secret coins of a part of an upload, drawn once: which block asks about which record, if any does."""

    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="secret_draws")
    first_row = models.BigIntegerField(default=0)
    blocks = models.BinaryField(help_text="One byte for each row: its block from 1, or 0.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = _rows_of_a_part("learner_coins", "blocks")

    def __str__(self) -> str:
        return f"coins of dataset {self.dataset_id} from row {self.first_row}"
