"""Queues of tasks, and the tasks that run by the clock."""

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
    "learner.tasks.forget_contributor_task",
    "learner.tasks.simulate_plan_task",
    "learner.tasks.apply_project_retention_task",
    "learner.tasks.delete_project_task",
)
BEAT_SCHEDULE: dict[str, dict[str, object]] = {
    f"heartbeat-{name}": {
        "task": "dpal_site.tasks.heartbeat_task",
        "schedule": 5.0,
        "kwargs": {"name": name},
        # One that waited this long says nothing any more, and a full queue must not fill with them.
        "options": {"queue": name, "expires": 30},
    }
    for name in QUEUES
} | {
    "send-stalled-jobs-again": {"task": "annotation.tasks.resend_stalled_jobs_task", "schedule": 5.0},
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
    "write-letters": {"task": "learner.tasks.write_letters_task", "schedule": 60.0, "options": {"expires": 60}},
    "charge-stale-reservations": {"task": "privacy.ledger.tasks.charge_stale_reservations_task", "schedule": 60.0},
}
