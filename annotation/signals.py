"""Signals to packages that this one never imports, each sent within a transaction."""

from django.dispatch import Signal

# A pool of a crowd was stored: `dataset`. Whatever gate it goes through starts.
pool_stored = Signal()
# Spans of an upload were read: `dataset`, and `found`, pairs of text and written spans in the order of its rows.
spans_read = Signal()
# Before a limit changes, in the same transaction: `project`, `account`, `epsilon_limit_nano`, `delta_limit_atto`.
# Whoever printed a lower limit issues it anew; what a receiver raises keeps the limit as it is.
limit_changing = Signal()
# Where the classes of a project changed, in the same transaction: `project` as it is now, and those it had `before`,
# each without those that count as another one.
# What a receiver raises keeps them as they were.
classes_changed = Signal()
# Something happened whose time no row keeps: `project`, `event`, `subject` (unique within the event) and `facts`.
project_event = Signal()
# A project is to be deleted: `project`. What a receiver raises keeps it.
project_deleting = Signal()
# A deleted project is being erased: `project`.
project_erasing = Signal()
# A project was opened from a draft, which is about to go: `draft`, `project`.
draft_opened = Signal()
