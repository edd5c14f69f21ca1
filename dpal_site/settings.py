"""The one settings file: read from the environment; what is unset runs embedded, for one machine."""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from kombu import Queue

from dpal_site import environment
from dpal_site.broker_address import broker_tls
from dpal_site.embedded import servers
from dpal_site.embedded.database_address import through_pooler
from dpal_site.file_address import storage_settings
from dpal_site.mail import mail_settings
from dpal_site.monitoring import logs

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = servers.var_dir()
# Which pages this process serves: all, those for annotators (`label`), or all but those (`web`); see `parts`.
SITE_PART = os.environ.get("SITE_PART", "")
if SITE_PART not in ("", "web", "label"):
    raise ImproperlyConfigured(f"SITE_PART must be 'web', 'label' or unset, got {SITE_PART!r}")
SERVES_LABELS_ALONE = SITE_PART == "label"
# Where each part sends what the other one serves, as a browser sees it.
WEB_URL, LABEL_URL = os.environ.get("WEB_URL", ""), os.environ.get("LABEL_URL", "")
# The label process has a database role of its own, and must not know the owner's password.
DATABASE_URL = environment.read("LABEL_DATABASE_URL" if SERVES_LABELS_ALONE else "DATABASE_URL")
if SERVES_LABELS_ALONE and environment.read("DATABASE_URL"):
    raise ImproperlyConfigured("a process with SITE_PART=label gets LABEL_DATABASE_URL and no DATABASE_URL")
EMBEDDED = not DATABASE_URL

DEBUG = os.environ.get("DEBUG") == "1"
ALLOWED_HOSTS = os.environ.get("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]").split(",")
CSRF_TRUSTED_ORIGINS = [origin for origin in os.environ.get("CSRF_TRUSTED_ORIGINS", "").split(",") if origin]


def _secret(name: str) -> str:
    """Read a secret from the environment; only an embedded site may make its own, kept under `var/`."""
    if value := environment.read(name):
        return value
    if EMBEDDED:
        return servers.local_secret(name.lower().replace("_", "-"))
    raise ImproperlyConfigured(f"{name} must be set in the environment when DATABASE_URL is set")


SECRET_KEY = _secret("SECRET_KEY")
# Contributors are stored as keyed hashes; a key of its own, so that rotating SECRET_KEY splits nobody in two.
PSEUDONYM_KEY = "" if SERVES_LABELS_ALONE else _secret("PSEUDONYM_KEY")
# Signs the manifests of releases; its public half is on every release page.
SIGNING_KEY = "" if SERVES_LABELS_ALONE else _secret("SIGNING_KEY")

INSTALLED_APPS = [
    "dpal_site",
    "learner",
    "annotation",
    "privacy",
    "django_htmx",
    "ninja",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "dpal_site.openid",
    "allauth.mfa",
    "allauth.usersessions",
    "django.contrib.admin",
    "django.contrib.humanize",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "dpal_site.middleware.RequestLogMiddleware",
    "dpal_site.monitoring.security.SecurityLogMiddleware",
    # Above whatever answers by itself, so that refusals and static files carry the headers, too.
    "dpal_site.middleware.ContentSecurityPolicyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "dpal_site.transport.TransportMiddleware",
    "dpal_site.middleware.ProblemMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "dpal_site.middleware.TimeZoneMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "dpal_site.sessions.SessionLimitsMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dpal_site.second_factor.SecondFactorMiddleware",
    "dpal_site.parts.PartMiddleware",
    "dpal_site.middleware.RefusalMiddleware",
    "dpal_site.accountability.AccountabilityMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]

ROOT_URLCONF = "dpal_site.urls"
WSGI_APPLICATION = "dpal_site.wsgi.application"
ASGI_APPLICATION = "dpal_site.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "dpal_site" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "dpal_site.accounts.sign_up_context",
            ],
        },
    },
]

if EMBEDDED and SERVES_LABELS_ALONE:
    DATABASE_URL = servers.label_database_url()
DATABASES = {"default": servers.database_settings(DATABASE_URL)}
# `transaction`: what stands at that address is PgBouncer or the like, and no two transactions need share a session.
DATABASE_POOLER = os.environ.get("DATABASE_POOLER", "")
if DATABASE_POOLER not in ("", "transaction"):
    raise ImproperlyConfigured(f"DATABASE_POOLER must be 'transaction' or unset, got {DATABASE_POOLER!r}")
if DATABASE_POOLER:
    DATABASES["default"] = through_pooler(DATABASES["default"])
else:
    # Lets `annotation.prepared` prepare what it runs, from the first run on; Django's own cursors never do.
    DATABASES["default"]["OPTIONS"]["prepare_threshold"] = 0
# A page whose statement takes longer says so; workers wait as long as their work takes. Set by the web server alone,
# and where a pooler stands between, by the pooler.
WEB_STATEMENT_SECONDS = int(os.environ.get("WEB_STATEMENT_SECONDS", 20))
if os.environ.get("DPAL_SERVES_PAGES") == "1" and not DATABASE_POOLER:
    _options = DATABASES["default"]["OPTIONS"]
    # What is prepared is planned once: the server would take the same path for everybody, and look for it every time.
    _session = f"-c plan_cache_mode=force_generic_plan -c statement_timeout={WEB_STATEMENT_SECONDS}s"
    _options["options"] = f"{_options.get('options', '')} {_session}".strip()
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {
        "NAME": "dpal_site.passwords.EasyPasswordValidator",
        "OPTIONS": {"words": tuple(os.environ.get("PASSWORD_WORDS", "").split(","))},
    },
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "annotation:projects"
LOGOUT_REDIRECT_URL = "login"
AUTHENTICATION_BACKENDS = [
    "dpal_site.logins.ByUserName",
    "dpal_site.logins.ByEmail",
]

# Who may open an account: whoever holds an invitation, or with SIGNUP=open everybody.
SIGNUP = os.environ.get("SIGNUP", "invited")
if SIGNUP not in ("invited", "open"):
    raise ImproperlyConfigured(f"SIGNUP must be 'invited' or 'open', got {SIGNUP!r}")
HTTPS = os.environ.get("HTTPS") == "1"
ACCOUNT_ADAPTER = "dpal_site.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
# No user name to choose: whether one is taken would tell who has an account.
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
# Only in the browser that signed up; elsewhere the link confirms the address and lets nobody in.
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True
# Whoever finds a session open must not lead the account's mail, or its second factor, to themselves.
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if HTTPS else "http"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_REDIRECT_URL = "login"
# The link in a mail to set a new password opens nothing after so long.
PASSWORD_RESET_TIMEOUT = 3600
# Addresses are believed from so many proxies; with none, rate limits count the address that connects.
ALLAUTH_TRUSTED_PROXY_COUNT = int(os.environ.get("TRUSTED_PROXY_COUNT", 0))
MFA_ADAPTER = "dpal_site.accounts.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
# Who is logged in has confirmed an address, or got the account from an administrator.
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "DPAL"
# Who must have one: `none`, `all` but crowd participants, or roles by comma. Sites that are deployed ask everybody.
SECOND_FACTOR_ROLES = frozenset({"administrators", "managers", "engineers", "annotators"})
_asked = os.environ.get("SECOND_FACTOR") or ("all" if HTTPS else "none")
SECOND_FACTOR = frozenset(name.strip() for name in _asked.split(",")) - {"none"}
if SECOND_FACTOR - SECOND_FACTOR_ROLES - {"all"}:
    raise ImproperlyConfigured(f"SECOND_FACTOR must be none, all, or among {', '.join(sorted(SECOND_FACTOR_ROLES))}")
# Whether who comes from the issuer has shown a second factor there.
OIDC_ASKS_SECOND_FACTOR = os.environ.get("OIDC_ASKS_SECOND_FACTOR") == "1"
# Without TLS a browser offers passkeys on this machine only.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not HTTPS
SOCIALACCOUNT_ADAPTER = "dpal_site.accounts.SocialAccountAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False
OIDC_ISSUER = os.environ.get("OIDC_ISSUER", "")
SOCIALACCOUNT_PROVIDERS: dict[str, dict[str, object]] = {
    "openid_connect": {
        "APPS": [
            {
                "provider_id": "oidc",
                "name": os.environ.get("OIDC_NAME", "OpenID"),
                "client_id": os.environ.get("OIDC_CLIENT_ID", ""),
                "secret": environment.read("OIDC_CLIENT_SECRET"),
                "settings": {"server_url": OIDC_ISSUER},
            }
        ]
        if OIDC_ISSUER
        else [],
    }
}
# A form that leads to the issuer is the one way off the site that the content security policy allows.
FORM_TARGETS = [f"{parts.scheme}://{parts.netloc}" for parts in [urlsplit(OIDC_ISSUER)] if parts.netloc]

# All processes count together what is rate-limited; the table comes with the migrations.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "site_cache"}}

vars().update(mail_settings(environment.read("EMAIL_URL"), folder=VAR_DIR / "mail"))

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
FORMAT_MODULE_PATH = ["dpal_site.formats"]
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
# An image collects them once, where no running process can write.
STATIC_ROOT = Path(os.environ.get("DPAL_STATIC") or VAR_DIR / "static")
# No other site has a use for our files.
WHITENOISE_ALLOW_ALL_ORIGINS = False
STATICFILES_DIRS = [BASE_DIR / "dpal_site" / "static"]


STORAGES = {
    "default": storage_settings(os.environ.get("STORAGE_URL") or (VAR_DIR / "storage").as_uri()),
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
# Where files are stored elsewhere, this host keeps copies of what it maps into memory, and no more than fits here.
FILE_CACHE_DIR = VAR_DIR / "file-copies"
FILE_CACHE_BYTES = int(os.environ.get("FILE_CACHE_MEBIBYTES", 20 * 1024)) * 1024**2
# Uploads above this are spooled to disk, so a large pool never sits in the web process's memory.
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024
UPLOAD_MAX_BYTES = int(os.environ.get("UPLOAD_MAX_BYTES", 2 * 1024**3))
# clamd, by `tcp://host:3310` or `unix:///path`; uploads pass it before they are read. `none`: nobody scans, on purpose.
CLAMD_URL = os.environ.get("CLAMD_URL", "")
if not re.fullmatch(r"|none|tcp://[^/:@]+:\d+|unix:///.+", CLAMD_URL):
    raise ImproperlyConfigured(f"CLAMD_URL must be tcp://host:port, unix:///path or none, got {CLAMD_URL!r}")
CLAMD_SECONDS = float(os.environ.get("CLAMD_SECONDS", 600))

# Without a request for so long, or after so long in all, somebody has to log in again.
SESSION_ENGINE = "dpal_site.logins"
SESSION_IDLE_SECONDS = int(os.environ.get("SESSION_IDLE_SECONDS", 12 * 3600))
SESSION_LIFETIME_SECONDS = SESSION_COOKIE_AGE = int(os.environ.get("SESSION_LIFETIME_SECONDS", 7 * 24 * 3600))
# A browser takes a cookie of such a name from this very host, over TLS and for all paths, or not at all.
SESSION_COOKIE_NAME = "__Host-session" if HTTPS else "sessionid"
CSRF_COOKIE_NAME = "__Host-csrf" if HTTPS else "csrftoken"
LANGUAGE_COOKIE_NAME = "__Host-language" if HTTPS else "django_language"
# `clock.js` knows these two names as well.
ZONE_COOKIE_NAME = "__Host-timezone" if HTTPS else "timezone"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_SSL_REDIRECT = HTTPS
# Probes and scrapers come by plain HTTP from the same network, past the proxy; programs are refused, not sent on.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$", r"^api/"]
SECURE_HSTS_SECONDS = int(os.environ.get("HSTS_SECONDS", 365 * 24 * 3600)) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CELERY_BROKER_URL = environment.read("CELERY_BROKER_URL") or servers.broker_url()
# Certificates that sign the broker's, where the usual authorities do not.
BROKER_CA_FILE = os.environ.get("BROKER_CA_FILE", "")
if _broker_tls := broker_tls(CELERY_BROKER_URL, BROKER_CA_FILE):
    CELERY_BROKER_USE_SSL = _broker_tls
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A broker that cannot be reached must not stall a click; beat sends again what was not sent.
CELERY_BROKER_CONNECTION_TIMEOUT = 2
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2}
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "celerybeat-schedule")
# What people wait for must not queue behind an import: a worker takes both queues, or one where told so.
QUEUES = ("light", "heavy")
CELERY_TASK_DEFAULT_QUEUE = "light"
CELERY_TASK_QUEUES = [Queue(name) for name in QUEUES]
HEAVY_TASKS = (
    "annotation.tasks.import_dataset_task",
    "annotation.tasks.read_import_parts_task",
    "annotation.tasks.run_gate_task",
    "annotation.tasks.run_survey_task",
    "annotation.tasks.compare_answers_task",
    "annotation.tasks.collect_gate_parts_task",
    "learner.tasks.run_round_task",
    "learner.tasks.score_part_task",
    "learner.tasks.make_feature_part_task",
    "learner.tasks.train_model_task",
    "learner.tasks.check_release_task",
    "learner.tasks.evaluate_release_task",
    "learner.tasks.run_stream_task",
    "learner.tasks.forget_contributor_task",
    "learner.tasks.simulate_plan_task",
    "learner.tasks.apply_project_retention_task",
    "learner.tasks.delete_project_task",
)
CELERY_TASK_ROUTES = {name: {"queue": "heavy"} for name in HEAVY_TASKS}
# A task that runs longer is told to stop, which fails its work with a reason; one that does not listen is killed, and
# its work is taken over like that of any dead worker.
HEAVY_TASK_SECONDS = int(os.environ.get("HEAVY_TASK_SECONDS", 6 * 3600))
TASK_GRACE_SECONDS = int(os.environ.get("TASK_GRACE_SECONDS", 60))
# Jobs that may wait for a worker before further uploads are refused and further rounds and trainings put off.
HEAVY_BACKLOG_LIMIT = int(os.environ.get("HEAVY_BACKLOG_LIMIT", 500))
# Redis hands a task to another worker after this time although the first is still at it; RabbitMQ leaves such options
# unread and has its own setting, `consumer_timeout`.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 2,
    "visibility_timeout": HEAVY_TASK_SECONDS + TASK_GRACE_SECONDS,
}
CELERY_TASK_SOFT_TIME_LIMIT = 300
CELERY_TASK_TIME_LIMIT = CELERY_TASK_SOFT_TIME_LIMIT + TASK_GRACE_SECONDS
CELERY_TASK_ANNOTATIONS = {
    name: {"soft_time_limit": HEAVY_TASK_SECONDS, "time_limit": HEAVY_TASK_SECONDS + TASK_GRACE_SECONDS}
    for name in HEAVY_TASKS
}
CELERY_BEAT_SCHEDULE = {
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
    "forget-abandoned-parts": {"task": "learner.tasks.forget_abandoned_parts_task", "schedule": 60.0},
    "forget-old-posts": {"task": "annotation.tasks.forget_old_posts_task", "schedule": 3600.0},
    "return-expired-leases": {"task": "annotation.tasks.return_expired_leases_task", "schedule": 10.0},
    "forget-ended-sessions": {"task": "dpal_site.tasks.forget_ended_sessions_task", "schedule": 3600.0},
    "forget-old-counts": {"task": "annotation.tasks.forget_old_counts_task", "schedule": 3600.0},
    "apply-retention": {"task": "learner.tasks.apply_retention_task", "schedule": 3600.0},
    "advance-projects": {"task": "learner.tasks.advance_projects_task", "schedule": 5.0},
    "tell-webhooks": {"task": "learner.tasks.record_webhooks_task", "schedule": 10.0},
    "charge-stale-reservations": {"task": "privacy.tasks.charge_stale_reservations_task", "schedule": 60.0},
}
# Called with project_id whenever gate output, pool rows or consensus labels may let a project take its next step.
# By name, because `annotation` must not import `learner`.
PROJECT_CHANGED_TASK = "learner.tasks.advance_project_task"

# Fits on each side of the audit that every mechanism passes before a release of it is offered.
CANARY_TRIALS = int(os.environ.get("CANARY_TRIALS", 1500))

# Readiness: how long a queue may be silent (heavy work of every worker included), and the space files need.
HEARTBEAT_LIMIT_SECONDS = int(os.environ.get("HEARTBEAT_LIMIT_SECONDS", 600))
DISK_FREE_LIMIT_MEBIBYTES = int(os.environ.get("DISK_FREE_LIMIT_MEBIBYTES", 512))
# Who may read /metrics: the bearer of this token; without one, programs on the same machine.
METRICS_TOKEN = environment.read("METRICS_TOKEN")

# Requests to the REST interface that one token may make in a minute, counted over all processes.
API_REQUESTS_PER_MINUTE = int(os.environ.get("API_REQUESTS_PER_MINUTE", 1200))

# Hosts that webhooks may be sent to, by comma, `host:port` where the port is not 443; none unless somebody lists them.
WEBHOOK_HOSTS = [host.strip().lower() for host in os.environ.get("WEBHOOK_HOSTS", "").split(",") if host.strip()]
# Certificates that sign those of the hosts, where the usual authorities do not.
WEBHOOK_CA_FILE = os.environ.get("WEBHOOK_CA_FILE", "")
# The one host:port of this machine that tests may send to; nothing in the environment can set it.
WEBHOOK_LOOPBACK_IN_TESTS = ""

# Records a stream keeps for examination, and how many one request may bring.
STREAM_BACKLOG_RECORDS = int(os.environ.get("STREAM_BACKLOG_RECORDS", 1_000_000))
STREAM_POST_RECORDS = 20_000

# A running job, round or training renews its lease; one that has not done so for this long is taken over.
WORK_LEASE_SECONDS = int(os.environ.get("WORK_LEASE_SECONDS", 30))
# A reservation nobody settled within this time is charged.
STALE_RESERVATION_SECONDS = int(os.environ.get("STALE_RESERVATION_SECONDS", 3600))
LEDGER_COUNTER_PATH = Path(os.environ.get("LEDGER_COUNTER_PATH") or VAR_DIR / "ledger-counter.json")

LOG_FORMAT = os.environ.get("LOG_FORMAT") or ("plain" if EMBEDDED else "json")
if LOG_FORMAT not in logs.FORMATS:
    raise ImproperlyConfigured(f"LOG_FORMAT must be one of {', '.join(logs.FORMATS)}, got {LOG_FORMAT!r}")
LOGGING = logs.logging_settings(LOG_FORMAT, os.environ.get("LOG_LEVEL", "INFO"))
