"""Errors of the embedded servers and the processes of a site."""


class EmbeddedError(Exception):
    """Base of this package's errors."""


class ServerNotStarted(EmbeddedError):
    """A server could not be started or stopped; the message carries the end of its log."""


class ProcessDied(EmbeddedError):
    """A process of the site ended by itself; the message carries the end of its log."""


class UnsupportedUrl(EmbeddedError, ValueError):
    """A database URL this site cannot use; the message never repeats the URL, which may hold a password."""
