"""Releases as a read-only hub of models, so that huggingface_hub fetches them with HF_ENDPOINT set to this site.

A project is the repository ``dpal/<slug>``. A revision is ``main`` (the latest), a channel, a number of a version or
``v`` and the number, or the commit that an earlier answer named.

References
----------
.. [1] Hugging Face, "Hub API Endpoints", https://huggingface.co/docs/hub/api.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.http import require_safe

from annotation.errors import AnnotationError
from annotation.work.rest import BearerToken, lacking_words
from annotation.work.services.tokens import Scope
from dpal_site.problems import MEANINGS, problem_response
from learner.errors import LearnerError
from learner.models import ModelRelease, ReleaseState
from learner.pools import selectors
from learner.releases import storage
from learner.releases.downloads import RETIRED_WARNING, file_response
from learner.releases.services import publishing

OWNER = "dpal"
MAIN = "main"
COMMIT_LETTERS = 40
# What a hub's card of a model is called, and where it is here.
CARD, README = "card.md", "README.md"
LARGEST_POINTER = 134
NO_REPOSITORY, NO_REVISION, NO_ENTRY = "RepoNotFound", "RevisionNotFound", "EntryNotFound"
View = Callable[..., HttpResponseBase]


def with_token(view: View) -> View:
    """Let in whoever has a token for models and a part in the project; refuse in the words that the client knows."""

    @require_safe
    @wraps(view)
    def run(request: HttpRequest, slug: str, **named: str) -> HttpResponseBase:
        try:
            token = BearerToken()(request)
            if token is None:
                response = _refused(401, "", "Send a valid token of this site.")
                response.headers["WWW-Authenticate"] = "Bearer"
                return response
            if Scope.MODELS_READ not in token.scopes:
                return _refused(403, "", lacking_words(request, Scope.MODELS_READ))
            if not selectors.projects_with_models(request.user).filter(slug=slug).exists():
                return _refused(404, NO_REPOSITORY, MEANINGS[404])
            return view(request, slug, **named)
        except Http404 as absent:
            return _refused(404, str(absent), MEANINGS[404])
        except (AnnotationError, LearnerError) as error:
            response = _refused(getattr(error, "status", 409), "", str(error))
            if (seconds := getattr(error, "retry_after_seconds", None)) is not None:
                response.headers["Retry-After"] = str(seconds)
            return response

    return run


def _refused(status: int, code: str, detail: str) -> HttpResponse:
    response = problem_response(status, detail)
    if code:
        response.headers["X-Error-Code"] = code
    response.headers["X-Error-Message"] = detail.replace("\n", " ")
    return response


def commit_of(release: ModelRelease) -> str:
    """Return the name of a release's files as they are now; a card that is issued anew is another commit."""
    return publishing.digest_over(release.digests)[:COMMIT_LETTERS]


def _found(request: HttpRequest, slug: str, revision: str) -> ModelRelease:
    project = selectors.projects_with_models(request.user).get(slug=slug)
    found: ModelRelease | None
    if len(revision) == COMMIT_LETTERS:
        found = next((one for one in selectors.releases_of(project) if commit_of(one) == revision), None)
    else:
        named = "latest" if revision == MAIN else revision
        found = selectors.find_release(project, named[1:] if named[:1] == "v" and named[1:].isdecimal() else named)
    if found is None or found.is_buried or found.state == ReleaseState.CANDIDATE:
        raise Http404(NO_REVISION)
    return found


def _names(release: ModelRelease) -> dict[str, str]:
    return {**{name: name for name in release.digests}, README: CARD}


@with_token
def model(request: HttpRequest, slug: str, revision: str = MAIN) -> HttpResponseBase:
    release = _found(request, slug, revision)
    body = {
        "id": f"{OWNER}/{slug}",
        "modelId": f"{OWNER}/{slug}",
        "author": OWNER,
        "sha": commit_of(release),
        "createdAt": release.created_at.strftime("%Y-%m-%dT00:00:00.000Z"),
        "lastModified": release.created_at.strftime("%Y-%m-%dT00:00:00.000Z"),
        "private": True,
        "disabled": False,
        "gated": False,
        "downloads": 0,
        "likes": 0,
        "library_name": "dpal-client",
        "tags": ["differential-privacy"],
        "siblings": [{"rfilename": name} for name in sorted(_names(release))],
    }
    return _with_release_headers(release, JsonResponse(body))


@with_token
def tree(request: HttpRequest, slug: str, revision: str) -> HttpResponseBase:
    release = _found(request, slug, revision)
    entries: list[dict[str, Any]] = []
    for name, stored in sorted(_names(release).items()):
        digest = release.digests[stored]
        with storage.open_file(release=release, name=stored) as file:
            size = file.seek(0, 2)
        large = {"oid": digest, "size": size, "pointerSize": LARGEST_POINTER}
        entries.append({"type": "file", "path": name, "oid": digest[:COMMIT_LETTERS], "size": size, "lfs": large})
    return _with_release_headers(release, JsonResponse(entries, safe=False))


@with_token
def resolve(request: HttpRequest, slug: str, revision: str, name: str) -> HttpResponseBase:
    release = _found(request, slug, revision)
    stored = _names(release).get(name)
    if stored is None:
        raise Http404(NO_ENTRY)
    response = file_response(request, release, stored)
    if request.method == "HEAD" and response.status_code == 200:
        # Servers differ in whether they drop the body of such an answer, so it has none.
        response.close()
        response = HttpResponse(headers=dict(response.items()))
    return _with_release_headers(release, response)


def _with_release_headers(release: ModelRelease, response: HttpResponseBase) -> HttpResponseBase:
    response.headers["X-Repo-Commit"] = commit_of(release)
    if release.state == ReleaseState.RETIRED:
        response.headers["Warning"] = RETIRED_WARNING
        response.headers["X-HF-Warning"] = f"retired; Version {release.version} is retired; its page says why."
    return response


app_name = "hub"
urlpatterns = [
    path(f"api/models/{OWNER}/<slug:slug>", model, name="model"),
    path(f"api/models/{OWNER}/<slug:slug>/revision/<str:revision>", model, name="revision"),
    path(f"api/models/{OWNER}/<slug:slug>/tree/<str:revision>", tree, name="tree"),
    path(f"{OWNER}/<slug:slug>/resolve/<str:revision>/<str:name>", resolve, name="file"),
]
