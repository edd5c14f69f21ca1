"""Presets of projects whose records arrive one by one."""

from typing import Any

from annotation.choices.preset import Preset

# Batches of answers join the sums of all before them.
_SUMS: dict[str, Any] = {
    "arrival": "stream",
    "privacy_unit": "record",
    "window_hours": 24,
    "windows_ahead": 4,
    "updates_per_release": 4,
    "estimator": "running_sums",
    "moment_share": 0.05,
    "updates_per_epoch": 64,
    "round_size": 50,
    "labels_per_release": 50,
    "overlap": 1,
    "feature_dimension": 32,
    "features": "planned",
    "text_columns": 128,
    "regularization": 1.0,
    "pool_epsilon": 2.0,
    "pool_delta": 5e-6,
}
# And every record is asked about.
_EVERY_RECORD: dict[str, Any] = {
    **_SUMS,
    "selection": "all",
    "selection_epsilon": 0.0,
    "update_policy": "flmb",
    "window_length": 50,
    # All of the limit, `planned_settings` of these settings.
    "training_epsilon": 1.999,
    "training_delta": 4.999e-6,
}

STREAM_PRESETS = (
    Preset(
        key="fraud-stream",
        title="Fraud stream to experts",
        sentence=(
            "Records are posted one by one; a noisy screen decides about each, once, whether an expert is asked. "
            "Annotators are your own experts and see the records. Everybody else sees the released models, and never "
            "which records were asked about; each record is protected from them."
        ),
        cost=(
            "The stream pays once, epsilon 2.00 and delta 5e-6, for any number of records and releases: who outside "
            "sees nothing of the choice pays for a tenth of what an update costs. Each version is made of all answers "
            "so far, by noisy sums that run on. In our benchmark at these limits it was right about 92 % of text "
            "messages after 500 answers and 95 % after 2,000 (random choice 92 and 91 %, no privacy 97 and 98 %, a "
            "constant 87 %), 97 and 98 % of network connections, and 98 and 100 % of ten intents, whose names alone "
            "tell 91 %."
        ),
        made_of="A release is made of all answers so far, by noisy sums that run on.",
        oracle="trusted",
        data_kinds=("table", "text"),
        defaults={
            **_SUMS,
            "selection": "bernoulli_screen",
            "selection_epsilon": 0.0,
            "screen_high": 0.1,
            "screen_low": 0.05,
            "screen_reach": 0.1,
            "drop_unselected": True,
            "update_policy": "flsw_hidden",
            "window_length": 500,
            "window_denominator": 50,
            # ln(1 + 0.1 (e^4.172 - 1)) and a tenth of the delta: all of the limit.
            "training_epsilon": 4.172,
            "training_delta": 4.999e-5,
        },
    ),
    Preset(
        key="full-information-ogd",
        title="Online learning from full answers",
        sentence=(
            "Every record that is posted is asked about, and every 50 answers make a new model at once. "
            "Annotators are your own experts and see the records. Everybody else sees the released models, which "
            "records were asked about and when; each record is protected from them."
        ),
        cost=(
            "The stream pays once, epsilon 2.00 and delta 5e-6, for any number of records and releases. Each version "
            "is made of all answers so far, by noisy sums that run on. In our benchmark at these limits it was right "
            "about 91 % of text messages after 500 answers and 92 % after 2,000 (a constant 87 %), 91 and 97 % of "
            "network connections (a constant 80 %), and 95 and 99 % of ten intents, whose names alone tell 91 %."
        ),
        made_of="A release is made of all answers so far, by noisy sums that run on.",
        oracle="trusted",
        data_kinds=("text", "table"),
        defaults=_EVERY_RECORD,
    ),
    Preset(
        key="confirm-or-reject",
        title="Confirm or reject the model's guess",
        sentence=(
            "Annotators only say whether the model's guess is right, about every record that is posted. "
            "Annotators are your own experts and see the records. Everybody else sees the released models, which "
            "records were asked about and when; each record is protected from them."
        ),
        cost=(
            "The stream pays once, epsilon 2.00 and delta 5e-6, for any number of records and releases. Of two "
            "classes a no tells as much as a yes. Of more, only a yes names a class, and half of the guesses are drawn "
            "evenly, so far more answers are needed. Of two classes it was right in our benchmark about 91 % of text "
            "messages after 500 answers and 92 % after 2,000 (a constant 87 %), and 91 and 97 % of network connections "
            "(a constant 80 %). Of ten intents, whose names alone tell 91 %, it was right about 90 and 97 %; of ten "
            "digits, which no name tells, about 11 and 33 %."
        ),
        made_of="A release is made of all answers so far, by noisy sums that run on.",
        oracle="trusted",
        data_kinds=("text", "table"),
        defaults={**_EVERY_RECORD, "question_kind": "confirm"},
    ),
)
