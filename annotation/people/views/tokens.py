"""A person's API tokens."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation.models import ApiToken
from annotation.people.forms.tokens import TokenForm
from annotation.people.identity import note_nothing, person_of
from annotation.work.services import tokens as token_service


@login_required
@never_cache
def tokens(request: HttpRequest) -> HttpResponse:
    """List the live tokens and make one; its secret is shown this once."""
    form = TokenForm(request.POST or None)
    secret = None
    if request.method == "POST" and form.is_valid():
        _, secret = token_service.create_token(
            user=person_of(request),
            name=form.cleaned_data["name"],
            scopes=form.cleaned_data["scopes"],
            lifetime=form.lifetime(),
        )
        form = TokenForm()
    context = {"form": form, "secret": secret, "tokens": token_service.live_tokens(user=person_of(request))}
    return render(request, "annotation/people/tokens.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """End one of the person's own tokens."""
    token = get_object_or_404(ApiToken, pk=token_id, user=request.user)
    if token.revoked_at is not None:
        note_nothing(request)
    token_service.revoke_token(token=token)
    return redirect("annotation:tokens")
