"""Releases as a read-only hub of models (https://huggingface.co/docs/hub/api), for huggingface_hub with HF_ENDPOINT."""

# A project is the repository `dpal/<slug>`. A revision is `main` (the latest), a channel, a number of a version or
# `v` and the number, or the commit that an earlier answer named.

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.http import require_safe

from annotation.errors import AnnotationError
from annotation.models import Project
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
# The day alone: a time would tell when a person started a training.
TIME = "%Y-%m-%dT00:00:00.000Z"
# What a hub's card of a model is called, and where it is here.
CARD, README = "card.md", "README.md"
LARGEST_POINTER = 134
NO_REPOSITORY, NO_REVISION, NO_ENTRY = "RepoNotFound", "RevisionNotFound", "EntryNotFound"
View = Callable[..., HttpResponseBase]


def with_token(view: View) -> View:
    """Let in whoever has a token for models and a part in the project; refuse in the words that the client knows."""

    @require_safe
    @wraps(view)
    def run(request: HttpRequest, **named: str) -> HttpResponseBase:
        try:
            token = BearerToken()(request)
            if token is None:
                response = _refused(401, "", "Send a valid token of this site.")
                response.headers["WWW-Authenticate"] = "Bearer"
                return response
            if Scope.MODELS_READ not in token.scopes:
                return _refused(403, "", lacking_words(request, Scope.MODELS_READ))
            known = selectors.projects_with_models(request.user)
            if "slug" in named and not known.filter(slug=named["slug"]).exists():
                return _refused(404, NO_REPOSITORY, MEANINGS[404])
            return view(request, **named)
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


def _offered(request: HttpRequest, slug: str) -> list[ModelRelease]:
    releases = selectors.releases_of(selectors.projects_with_models(request.user).get(slug=slug))
    return [one for one in releases if not one.is_buried and one.state != ReleaseState.CANDIDATE]


@with_token
def models(request: HttpRequest) -> HttpResponseBase:
    if request.GET.get("author", OWNER) != OWNER:
        return JsonResponse([], safe=False)
    projects = selectors.projects_with_models(request.user).filter(slug__icontains=request.GET.get("search", ""))
    newest = ((project.slug, _newest(project)) for project in projects.order_by("slug"))
    return JsonResponse([_described(slug, release) for slug, release in newest if release], safe=False)


def _newest(project: Project) -> ModelRelease | None:
    release = selectors.find_release(project, "latest")
    return None if release is None or release.is_buried else release


@with_token
def refs(request: HttpRequest, slug: str) -> HttpResponseBase:
    tags = [
        {"name": f"v{one.version}", "ref": f"refs/tags/v{one.version}", "targetCommit": commit_of(one)}
        for one in _offered(request, slug)
    ]
    latest = _newest(selectors.projects_with_models(request.user).get(slug=slug))
    main = [{"name": MAIN, "ref": f"refs/heads/{MAIN}", "targetCommit": commit_of(latest)}] if latest else []
    return JsonResponse({"branches": main, "tags": tags, "converts": []})


@with_token
def commits(request: HttpRequest, slug: str, revision: str) -> HttpResponseBase:
    last = _found(request, slug, revision)
    body = [
        {
            "id": commit_of(one),
            "title": f"Version {one.version}",
            "message": "",
            "date": one.created_at.strftime(TIME),
            "authors": [{"user": OWNER}],
        }
        for one in _offered(request, slug)
        if one.version <= last.version
    ]
    return JsonResponse(body, safe=False)


@with_token
def model(request: HttpRequest, slug: str, revision: str = MAIN) -> HttpResponseBase:
    release = _found(request, slug, revision)
    return _with_release_headers(release, JsonResponse(_described(slug, release)))


def _described(slug: str, release: ModelRelease) -> dict[str, Any]:
    return {
        "id": f"{OWNER}/{slug}",
        "modelId": f"{OWNER}/{slug}",
        "author": OWNER,
        "sha": commit_of(release),
        "createdAt": release.created_at.strftime(TIME),
        "lastModified": release.created_at.strftime(TIME),
        "private": True,
        "disabled": False,
        "gated": False,
        "downloads": 0,
        "likes": 0,
        "library_name": "dpal-client",
        "tags": ["differential-privacy"],
        "siblings": [{"rfilename": name} for name in sorted(_names(release))],
    }


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
    path("api/models", models, name="models"),
    path(f"api/models/{OWNER}/<slug:slug>", model, name="model"),
    path(f"api/models/{OWNER}/<slug:slug>/refs", refs, name="refs"),
    path(f"api/models/{OWNER}/<slug:slug>/commits/<str:revision>", commits, name="commits"),
    path(f"api/models/{OWNER}/<slug:slug>/revision/<str:revision>", model, name="revision"),
    path(f"api/models/{OWNER}/<slug:slug>/tree/<str:revision>", tree, name="tree"),
    path(f"{OWNER}/<slug:slug>/resolve/<str:revision>/<str:name>", resolve, name="file"),
]
