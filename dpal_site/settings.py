"""The one settings file: read from the environment; what is unset runs embedded, for one machine."""

import os
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

from csp import constants as csp
from django.core.exceptions import ImproperlyConfigured
from kombu import Queue

from dpal_site.embedded import servers
from dpal_site.embedded.database_address import through_pooler
from dpal_site.environment import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    SCANNER_ADDRESS,
    broker_tls,
    env,
    mail_settings,
    one_of_words,
    storage_settings,
    table_places,
)
from dpal_site.operations import logs
from dpal_site.operations.page_connections import for_pages
from dpal_site.schedule import BEAT_SCHEDULE, HEAVY_TASKS, OUTSIDE_TASKS, QUEUES, limited

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = servers.var_dir()
# Which pages this process serves: all, those for annotators (`label`), or all but those (`web`); see `parts`.
SITE_PART = env.str("SITE_PART", "", validate=one_of_words("web", "label", ""))
SERVES_LABELS_ALONE = SITE_PART == "label"
# Where each part sends what the other one serves, as a browser sees it.
WEB_URL, LABEL_URL = env.str("WEB_URL", ""), env.str("LABEL_URL", "")
# Where the process of all other pages hands requests for label pages on, as it sees it: browsers keep to one address.
LABEL_PROCESS_URL = env.str("LABEL_PROCESS_URL", "") if SITE_PART == "web" else ""
# Web servers and workers have a database role that owns nothing, and the label process a narrower one of its own; the
# owner's address, DATABASE_OWNER_URL, is for `migrate` alone.
DATABASE_URL = env.str("LABEL_DATABASE_URL" if SERVES_LABELS_ALONE else "DATABASE_URL", "")
if SERVES_LABELS_ALONE and env.str("DATABASE_URL", ""):
    raise ImproperlyConfigured("a process with SITE_PART=label gets LABEL_DATABASE_URL and no DATABASE_URL")
DATABASE_OWNER_URL = env.str("DATABASE_OWNER_URL", "")
if DATABASE_OWNER_URL and SITE_PART:
    raise ImproperlyConfigured("a process that serves pages must not know DATABASE_OWNER_URL")
if DATABASE_OWNER_URL and not DATABASE_URL:
    raise ImproperlyConfigured("DATABASE_OWNER_URL needs a DATABASE_URL that names the role of the site")
EMBEDDED = not DATABASE_URL

DEBUG = env.bool("DEBUG", False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = list(filter(None, env.list("CSRF_TRUSTED_ORIGINS", [], subcast=str.strip)))
# What addresses in letters begin with; whoever writes them sees no request.
SITE_URL = env.str("SITE_URL", "") or WEB_URL or next(iter(CSRF_TRUSTED_ORIGINS), "http://127.0.0.1:8000")


def _secret(name: str) -> str:
    """Read a secret from the environment; only an embedded site may make its own, kept under `var/`."""
    if value := env.str(name, ""):
        return value
    if EMBEDDED:
        return servers.local_secret(name.lower().replace("_", "-"))
    raise ImproperlyConfigured(f"{name} must be set in the environment when DATABASE_URL is set")


SECRET_KEY = _secret("SECRET_KEY")
# Keys before it: sessions and reset links that were made under them still count.
SECRET_KEY_FALLBACKS = list(filter(None, env.list("SECRET_KEY_FALLBACKS", [], subcast=str.strip)))
# Contributors are stored as keyed hashes; a key of its own, so that rotating SECRET_KEY splits nobody in two.
PSEUDONYM_KEY = "" if SERVES_LABELS_ALONE else _secret("PSEUDONYM_KEY")
# Signs the manifests of releases, statements and the ledger's checkpoints; its public half is on every release page.
SIGNING_KEY = "" if SERVES_LABELS_ALONE else _secret("SIGNING_KEY")
# What the names of this site's ledgers begin with on their checkpoints; unset, it follows from the signing key.
LEDGER_ORIGIN = env.str("LEDGER_ORIGIN", "")

# Names of folders under `addons/`, by comma; empty for none. Tools that read the code alone load them all.
ALL_ADDONS = sorted(path.parent.name for path in (BASE_DIR / "addons").glob("*/apps.py"))
_default = ALL_ADDONS if os.environ.get("DPAL_NO_SERVERS") == "1" else ["webhooks", "language_models"]
ADDONS = [name.strip() for name in os.environ.get("DPAL_ADDONS", ",".join(_default)).split(",") if name.strip()]
if _unknown := sorted(set(ADDONS) - set(ALL_ADDONS)):
    raise ImproperlyConfigured(f"DPAL_ADDONS names {', '.join(_unknown)}; there are {', '.join(ALL_ADDONS)}")
ADDON_SETTINGS = [import_module(f"addons.{name}.settings") for name in ADDONS]
for _addon in ADDON_SETTINGS:
    vars().update(_addon.read_settings(env))

INSTALLED_APPS = [
    "dpal_site",
    *(f"addons.{name}" for name in ADDONS),
    "learner",
    "annotation",
    "privacy.ledger",
    "django_htmx",
    "ninja",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "dpal_site.accounts.openid",
    "allauth.mfa",
    "allauth.usersessions",
    "django.contrib.admin",
    "django.contrib.humanize",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "dpal_site.middleware.RequestLogMiddleware",
    "dpal_site.operations.security.SecurityLogMiddleware",
    # Above whatever answers by itself, so that refusals and static files carry the headers, too.
    "csp.middleware.CSPMiddleware",
    "dpal_site.middleware.HeadersMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "dpal_site.middleware.TransportMiddleware",
    "dpal_site.middleware.ProblemMiddleware",
    "dpal_site.accounts.logins.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "dpal_site.middleware.TimeZoneMiddleware",
    "django.middleware.common.CommonMiddleware",
    # Whoever looks for a form's token reads the whole body.
    "dpal_site.bodies.RoomMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "dpal_site.accounts.sessions.SessionLimitsMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dpal_site.accounts.second_factor.SecondFactorMiddleware",
    "dpal_site.operations.label_pages.PartMiddleware",
    "dpal_site.middleware.RefusalMiddleware",
    "dpal_site.accountability.AccountabilityMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]

ROOT_URLCONF = "dpal_site.urls"
WSGI_APPLICATION = "dpal_site.wsgi.application"

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
                "dpal_site.accounts.adapter.sign_up_context",
            ],
            "builtins": ["annotation.templatetags.reads"],
        },
    }
]

if EMBEDDED:
    DATABASE_URL = servers.label_database_url() if SERVES_LABELS_ALONE else servers.database_url()
DATABASES = {"default": servers.database_settings(DATABASE_URL)}
# `transaction`: what stands at that address is PgBouncer or the like, and no two transactions need share a session.
DATABASE_POOLER = env.str("DATABASE_POOLER", "", validate=one_of_words("transaction", ""))
if DATABASE_POOLER:
    DATABASES["default"] = through_pooler(DATABASES["default"])
# A page whose statement takes longer says so; workers wait as long as their work takes. Set by the web server alone,
# and where a pooler stands between, by the pooler.
WEB_STATEMENT_SECONDS = env.int("WEB_STATEMENT_SECONDS", 20, validate=AT_LEAST_ONE)
if env.bool("DPAL_SERVES_PAGES", False):
    DATABASES["default"] = for_pages(
        DATABASES["default"],
        threads=env.int("WEB_THREADS", 4, validate=AT_LEAST_ONE),
        statement_seconds=WEB_STATEMENT_SECONDS,
        behind_pooler=bool(DATABASE_POOLER),
    )
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {
        "NAME": "dpal_site.accounts.passwords.EasyPasswordValidator",
        "OPTIONS": {"words": tuple(env.list("PASSWORD_WORDS", []))},
    },
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "annotation:projects"
LOGOUT_REDIRECT_URL = "login"
AUTHENTICATION_BACKENDS = ["dpal_site.accounts.logins.ByUserName", "dpal_site.accounts.logins.ByEmail"]

# Who may open an account: whoever holds an invitation, or with SIGNUP=open everybody.
SIGNUP = env.str("SIGNUP", "invited", validate=one_of_words("invited", "open"))
HTTPS = env.bool("HTTPS", False)
ACCOUNT_ADAPTER = "dpal_site.accounts.adapter.AccountAdapter"
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
ALLAUTH_TRUSTED_PROXY_COUNT = env.int("TRUSTED_PROXY_COUNT", 0, validate=NOT_NEGATIVE)
MFA_ADAPTER = "dpal_site.accounts.adapter.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
# Who is logged in has confirmed an address, or got the account from an administrator.
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "DPAL"
# Who must have one: `none`, `all` but crowd participants, or roles by comma. Sites that are deployed ask everybody.
SECOND_FACTOR_ROLES = frozenset({"administrators", "managers", "engineers", "annotators"})
_asked = env.list("SECOND_FACTOR", ["all" if HTTPS else "none"], subcast=str.strip)
SECOND_FACTOR = frozenset(_asked) - {"none"}
if SECOND_FACTOR - SECOND_FACTOR_ROLES - {"all"}:
    raise ImproperlyConfigured(f"SECOND_FACTOR must be none, all, or among {', '.join(sorted(SECOND_FACTOR_ROLES))}")
# Whether who comes from the issuer has shown a second factor there.
OIDC_ASKS_SECOND_FACTOR = env.bool("OIDC_ASKS_SECOND_FACTOR", False)
# Without TLS a browser offers passkeys on this machine only.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not HTTPS
SOCIALACCOUNT_ADAPTER = "dpal_site.accounts.adapter.SocialAccountAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False
OIDC_ISSUER = env.str("OIDC_ISSUER", "")
SOCIALACCOUNT_PROVIDERS: dict[str, dict[str, object]] = {
    "openid_connect": {
        "APPS": [
            {
                "provider_id": "oidc",
                "name": env.str("OIDC_NAME", "OpenID"),
                "client_id": env.str("OIDC_CLIENT_ID", ""),
                "secret": env.str("OIDC_CLIENT_SECRET", ""),
                "settings": {"server_url": OIDC_ISSUER},
            }
        ]
        if OIDC_ISSUER
        else []
    }
}
# Pages load what the site itself serves, no inline script or style, and nothing of another host.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [csp.NONE],
        **dict.fromkeys(("script-src", "style-src", "font-src", "connect-src"), (csp.SELF,)),
        "img-src": [csp.SELF, "data:"],
        # A form that leads to the issuer is the one way off the site.
        "form-action": [csp.SELF, *(f"{to.scheme}://{to.netloc}" for to in [urlsplit(OIDC_ISSUER)] if to.netloc)],
        "base-uri": [csp.NONE],
        "frame-ancestors": [csp.NONE],
    }
}

# All processes count together what is rate-limited. Django makes room by throwing live entries away, so that guesses
# would be forgotten: there is room for all that a clock has not yet swept.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "dpal_site_cachedcount",
        "KEY_FUNCTION": "dpal_site.accounts.guessing.cache_key",
        "OPTIONS": {"MAX_ENTRIES": 2**31},
    }
}

vars().update(mail_settings(env.str("EMAIL_URL", ""), folder=VAR_DIR / "mail"))

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
FORMAT_MODULE_PATH = ["dpal_site.locale"]
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
# An image collects them once, where no running process can write.
STATIC_ROOT = env.path("DPAL_STATIC", VAR_DIR / "static")
# No other site has a use for our files.
WHITENOISE_ALLOW_ALL_ORIGINS = False
STATICFILES_DIRS = [BASE_DIR / "dpal_site" / "static"]
STORAGES = {
    "default": storage_settings(env.str("STORAGE_URL", (VAR_DIR / "storage").as_uri())),
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
# Where files are stored elsewhere, this host keeps copies of what it maps into memory, and no more than fits here.
FILE_CACHE_DIR = VAR_DIR / "file-copies"
FILE_CACHE_BYTES = env.int("FILE_CACHE_MEBIBYTES", 20 * 1024, validate=AT_LEAST_ONE) * 1024**2
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024  # what is larger is spooled to disk, so no large pool sits in a web process
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024
POOLS_IN_DATABASE = env.bool("POOLS_IN_DATABASE", False)  # rows of a crowd's pool, instead of columns in storage
POOL_SOURCES = table_places()  # where tables may lie that are registered as pools and stay there
UPLOAD_MAX_BYTES = env.int("UPLOAD_MAX_BYTES", 2 * 1024**3, validate=AT_LEAST_ONE)
# clamd, by `tcp://host:3310` or `unix:///path`; uploads pass it before they are read. `none`: nobody scans, on purpose.
CLAMD_URL = env.str("CLAMD_URL", "", validate=SCANNER_ADDRESS)
CLAMD_SECONDS = env.float("CLAMD_SECONDS", 600)

# Without a request for so long, or after so long in all, somebody has to log in again.
SESSION_ENGINE = "dpal_site.accounts.logins"
SESSION_IDLE_SECONDS = env.int("SESSION_IDLE_SECONDS", 12 * 3600, validate=AT_LEAST_ONE)
SESSION_LIFETIME_SECONDS = SESSION_COOKIE_AGE = env.int("SESSION_LIFETIME_SECONDS", 604_800, validate=AT_LEAST_ONE)
# A browser takes a cookie of such a name from this very host, over TLS and for all paths, or not at all.
SESSION_COOKIE_NAME = "__Host-session" if HTTPS else "sessionid"
CSRF_COOKIE_NAME = "__Host-csrf" if HTTPS else "csrftoken"
# Which accounts this browser was in: whoever guesses their passwords elsewhere does not slow it.
KNOWN_BROWSER_COOKIE_NAME = "__Host-known" if HTTPS else "known"
LANGUAGE_COOKIE_NAME = "__Host-language" if HTTPS else "django_language"
# `clock.js` knows these two names as well.
ZONE_COOKIE_NAME = "__Host-timezone" if HTTPS else "timezone"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_SSL_REDIRECT = HTTPS
# Probes and scrapers come by plain HTTP from the same network, past the proxy; programs are refused, not sent on.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$", r"^api/"]
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", 365 * 24 * 3600, validate=NOT_NEGATIVE) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", "") or servers.broker_url()
# Certificates that sign the broker's, where the usual authorities do not.
BROKER_CA_FILE = env.str("BROKER_CA_FILE", "")
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
CELERY_WORKER_CONSUMER = "dpal_site.consumer.WatchedConsumer"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "celerybeat-schedule")
CELERY_TASK_DEFAULT_QUEUE = "light"
CELERY_TASK_QUEUES = [Queue(name) for name in QUEUES]
HEAVY = (*HEAVY_TASKS, *(task for addon in ADDON_SETTINGS for task in getattr(addon, "HEAVY_TASKS", ())))
OUTSIDE = [*OUTSIDE_TASKS, *(task for addon in ADDON_SETTINGS for task in getattr(addon, "OUTSIDE_TASKS", ()))]
CELERY_TASK_ROUTES = {name: {"queue": "heavy"} for name in HEAVY} | {name: {"queue": "outside"} for name in OUTSIDE}
# How long a file of labels is kept that a worker wrote; with how many answers the page offers to have one written.
EXPORT_KEPT_DAYS = env.int("EXPORT_KEPT_DAYS", 7, validate=AT_LEAST_ONE)
EXPORT_PREPARED_FROM = env.int("EXPORT_PREPARED_FROM", 100_000, validate=NOT_NEGATIVE)
# A task that runs longer is told to stop, which fails its work with a reason; one that does not listen is killed, and
# its work is taken over like that of any dead worker.
HEAVY_TASK_SECONDS = env.int("HEAVY_TASK_SECONDS", 6 * 3600, validate=AT_LEAST_ONE)
TASK_GRACE_SECONDS = env.int("TASK_GRACE_SECONDS", 60, validate=NOT_NEGATIVE)
# Jobs that may wait for a worker before further uploads are refused and further rounds and trainings put off.
HEAVY_BACKLOG_LIMIT = env.int("HEAVY_BACKLOG_LIMIT", 500, validate=NOT_NEGATIVE)
# Jobs of one project, and of one person, that are with the workers at a time; further ones wait for these.
HEAVY_SHARE = env.int("HEAVY_SHARE", 4, validate=AT_LEAST_ONE)
# Redis hands a task on after this time although a worker is still at it; RabbitMQ has its own, `consumer_timeout`.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 2,
    "visibility_timeout": HEAVY_TASK_SECONDS + TASK_GRACE_SECONDS,
}
CELERY_TASK_SOFT_TIME_LIMIT = 300
CELERY_TASK_TIME_LIMIT = CELERY_TASK_SOFT_TIME_LIMIT + TASK_GRACE_SECONDS
CELERY_TASK_ANNOTATIONS = {
    name: {"soft_time_limit": HEAVY_TASK_SECONDS, "time_limit": HEAVY_TASK_SECONDS + TASK_GRACE_SECONDS}
    for name in HEAVY
}
CELERY_BEAT_SCHEDULER = "dpal_site.clock.Clock"
CELERY_BEAT_SCHEDULE = limited(
    BEAT_SCHEDULE
    | {name: entry for addon in ADDON_SETTINGS for name, entry in getattr(addon, "BEAT_SCHEDULE", {}).items()}
)
# Called with project_id whenever gate output, pool rows or consensus labels may let a project take its next step.
# By name, because `annotation` must not import `learner`.
PROJECT_CHANGED_TASK = "learner.tasks.advance_project_task"

# Fits on each side of the audit that every mechanism passes before a release of it is offered.
CANARY_TRIALS = env.int("CANARY_TRIALS", 2000, validate=AT_LEAST_ONE)

# Readiness: how long a queue may be silent (heavy work of every worker included), and the space files need.
HEARTBEAT_LIMIT_SECONDS = env.int("HEARTBEAT_LIMIT_SECONDS", 600, validate=NOT_NEGATIVE)
DISK_FREE_LIMIT_MEBIBYTES = env.int("DISK_FREE_LIMIT_MEBIBYTES", 512, validate=NOT_NEGATIVE)
# Who may read /metrics: the bearer of this token; without one, programs on the same machine.
METRICS_TOKEN = env.str("METRICS_TOKEN", "")

# Requests to the REST interface that one token may make in a minute, counted over all processes.
API_REQUESTS_PER_MINUTE = env.int("API_REQUESTS_PER_MINUTE", 1200, validate=AT_LEAST_ONE)

# Records a stream keeps for examination, and how many one request may bring.
STREAM_BACKLOG_RECORDS = env.int("STREAM_BACKLOG_RECORDS", 1_000_000, validate=AT_LEAST_ONE)
STREAM_POST_RECORDS = 20_000

# A running job, round or training renews its lease; one that has not done so for this long is taken over.
WORK_LEASE_SECONDS = env.int("WORK_LEASE_SECONDS", 30, validate=AT_LEAST_ONE)
# A reservation nobody settled within this time is charged.
STALE_RESERVATION_SECONDS = env.int("STALE_RESERVATION_SECONDS", 3600, validate=NOT_NEGATIVE)
# The counter outside the database that notices an old copy: a file no backup takes along, or hosts' own bucket.
LEDGER_COUNTER_PATH = env.path("LEDGER_COUNTER_PATH", VAR_DIR / "ledger-counter.json")
LEDGER_COUNTER_URL = env.str("LEDGER_COUNTER_URL", "")
if LEDGER_COUNTER_URL:
    STORAGES["ledger_counter"] = storage_settings(LEDGER_COUNTER_URL)

LOG_FORMAT = env.str("LOG_FORMAT", "plain" if EMBEDDED else "json", validate=one_of_words(*logs.FORMATS))
LOGGING = logs.logging_settings(LOG_FORMAT, env.str("LOG_LEVEL", "INFO"))
