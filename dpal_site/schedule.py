"""Queues of tasks, and the tasks that run by the clock."""

from typing import Any

# What people wait for must queue neither behind an import nor behind a server elsewhere: a worker takes all queues, or
# one where told so.
QUEUES = ("light", "heavy", "outside")
HEAVY_TASKS = (
    "annotation.tasks.import_dataset_task",
    "annotation.tasks.read_import_parts_task",
    "annotation.tasks.run_gate_task",
    "annotation.tasks.run_survey_task",
    "annotation.tasks.compare_answers_task",
    "annotation.tasks.export_labels_task",
    "learner.tasks.run_round_task",
    "learner.tasks.train_model_task",
    "learner.tasks.check_release_task",
    "learner.tasks.evaluate_release_task",
    "learner.tasks.run_stream_task",
    "learner.tasks.measure_shares_task",
    "learner.tasks.forget_contributor_task",
    "learner.tasks.simulate_plan_task",
    "learner.tasks.apply_project_retention_task",
    "learner.tasks.delete_project_task",
)
OUTSIDE_TASKS = ("annotation.tasks.send_letter_task",)
# One that is lost with its broker is sent again after so long.
MOST_WAITING_SECONDS = 30.0
BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    f"heartbeat-{name}": {
        "task": "dpal_site.tasks.heartbeat_task",
        "schedule": 5.0,
        "kwargs": {"name": name},
        "options": {"queue": name},
    }
    for name in QUEUES
} | {
    "send-stalled-work-again": {"task": "annotation.tasks.resend_stalled_work_task", "schedule": 5.0},
    "forget-read-uploads": {"task": "annotation.tasks.forget_read_uploads_task", "schedule": 60.0},
    "forget-old-drafts": {"task": "annotation.tasks.forget_old_drafts_task", "schedule": 3600.0},
    "forget-unowned-files": {"task": "annotation.tasks.forget_unowned_files_task", "schedule": 3600.0},
    "forget-abandoned-parts": {"task": "learner.tasks.forget_abandoned_parts_task", "schedule": 3600.0},
    "forget-old-posts": {"task": "annotation.tasks.forget_old_posts_task", "schedule": 3600.0},
    "return-expired-leases": {"task": "annotation.tasks.return_expired_leases_task", "schedule": 10.0},
    "forget-ended-sessions": {"task": "dpal_site.tasks.forget_ended_sessions_task", "schedule": 3600.0},
    "forget-old-counts": {"task": "annotation.tasks.forget_old_counts_task", "schedule": 3600.0},
    "forget-old-guesses": {"task": "dpal_site.tasks.forget_old_counts_task", "schedule": 60.0},
    "apply-retention": {"task": "learner.tasks.apply_retention_task", "schedule": 3600.0},
    "advance-projects": {"task": "learner.tasks.advance_projects_task", "schedule": 5.0},
    "look-again": {"task": "annotation.tasks.look_again_task", "schedule": 3600.0},
    "write-letters": {"task": "learner.tasks.write_letters_task", "schedule": 60.0},
    "charge-stale-reservations": {"task": "privacy.ledger.tasks.charge_stale_reservations_task", "schedule": 60.0},
}


def limited(entries: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Have a task that nobody takes expire after its period, or half a minute, and bear its name for the clock."""
    return {
        name: entry
        | {
            "options": entry.get("options", {})
            | {"expires": max(MOST_WAITING_SECONDS, entry["schedule"]), "headers": {"clock_name": name}}
        }
        for name, entry in entries.items()
    }
