"""Posts each held action to a chat with a link. The link leads to a page that shows the action, after a sign-in with
the organization's own provider (OpenID Connect). The provider says who is in the group that approves. A link that is
opened, by a person or by the chat's preview, decides nothing: the verdict is a form of the page.
"""

from __future__ import annotations

import os
import secrets
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import writ
from authlib.integrations.base_client import OAuthError
from authlib.integrations.flask_client import OAuth
from flask import Flask, Response, abort, redirect, render_template_string, request, session

SITE = os.environ["PUBLIC_URL"].rstrip("/")  # of this program, as browsers reach it: https://approvals.example
GROUP = os.environ["APPROVERS_GROUP"]  # who is in it may decide, says the claim "groups" of the provider
client = writ.Client()  # WRIT_URL, and a WRIT_API_KEY with the scopes approvals:read and approvals:decide alone

app = Flask(__name__)
app.config.update(
    SECRET_KEY=os.environ.get("SESSION_SECRET") or secrets.token_hex(32),
    PERMANENT_SESSION_LIFETIME=timedelta(minutes=15),  # then the provider is asked again
    SESSION_COOKIE_SAMESITE="Lax",
    SESSION_COOKIE_SECURE=SITE.startswith("https://"),
    MAX_CONTENT_LENGTH=1 << 20,
)
provider = OAuth(app).register(
    "provider",
    server_metadata_url=os.environ["OIDC_ISSUER"].rstrip("/") + "/.well-known/openid-configuration",
    client_id=os.environ["OIDC_CLIENT_ID"],
    client_secret=os.environ["OIDC_CLIENT_SECRET"],
    client_kwargs={"scope": "openid email groups", "code_challenge_method": "S256"},
)

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Approval</title>
<h1>{{ approval.status }}</h1>
<table>{% for name, value in rows %}<tr><th scope="row">{{ name }}<td><bdi>{{ value }}</bdi>{% endfor %}</table>
{% if approval.status == "pending" %}<form method="post">
<p><label>Comment <input name="comment" maxlength="200"></label>
<p><button name="verdict" value="approved">Approve</button> <button name="verdict" value="rejected">Reject</button></form>{% endif %}
<p>Signed in as {{ person }} {{ email }}."""


@app.post("/webhook")
def webhook() -> tuple[str, int]:
    """Takes events of writ. An event that comes twice is a message more, about the same approval."""
    try:
        event = writ.verify_webhook(os.environ["WRIT_WEBHOOK_SECRET"], request.headers, request.get_data())
    except writ.BadWebhook:
        abort(401)
    if event.get("type") == "approval.pending":
        # The agent wrote the resource and the metadata. In a chat they could look like a link of ours.
        cost = event["data"].get("cost")
        what = f"{cost['amount_minor']} minor units of {cost['currency']}" if cost else "An action"
        text = f"{what} waits for approval: {SITE}/approvals/{UUID(event['data']['approval_id'])}"
        httpx.post(os.environ["CHAT_WEBHOOK_URL"], json={"text": text}, timeout=5).raise_for_status()  # else it comes again
    return "", 204


def approver() -> str:
    """Returns the approver who is signed in. Sends others to the provider, or away."""
    if "person" not in session:
        if request.method != "GET":
            abort(401)
        session["page"] = request.path
        abort(provider.authorize_redirect(f"{SITE}/signed-in"))
    if not session["approves"]:
        abort(403)
    return str(session["person"])


@app.get("/signed-in")
def signed_in() -> Any:
    """Takes what the provider says of a person. Authlib verifies state, nonce, PKCE and the token's signature."""
    page = session.get("page", "/")
    try:
        claims = provider.authorize_access_token()["userinfo"]
    except OAuthError:
        abort(401)
    groups = claims.get("groups")
    session.clear()
    session.permanent = True
    session["person"], session["email"] = claims["sub"], claims.get("email", "")
    session["approves"] = isinstance(groups, list) and GROUP in groups
    return redirect(page)


def shown(value: Any) -> str:
    """Returns a value on one line, without characters that hide others or turn them round."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(value))


@app.get("/approvals/<uuid:approval>")
def show(approval: UUID) -> str:
    """Shows all that an approval approves."""
    person = approver()
    a = client.approval(str(approval))
    rows = [(name, a[name]) for name in ("agent_id", "action_type", "resource", "policy_id", "held_at", "expires_at")]
    rows += [(name, f"{a['cost']['amount_minor']} minor units of {a['cost']['currency']}") for name in ["cost"] if "cost" in a]
    metadata = dict.fromkeys(a.get("metadata_keys", []), "(its value is not kept)") | a.get("metadata", {})
    rows += [(f"metadata.{key}", value) for key, value in metadata.items()]
    rows += [("held for", f["reason"]) for f in a["findings"]]
    rows += [(name, a[name]) for name in ("decided_by", "comment") if name in a]
    return render_template_string(PAGE, approval=a, rows=[(shown(n), shown(v)) for n, v in rows], person=person, email=session["email"])


@app.post("/approvals/<uuid:approval>")
def decide(approval: UUID) -> Any:
    """Decides. The person's id is in the verdict that writ signs: writ keeps no mail addresses."""
    if request.headers.get("Origin") != SITE:
        abort(403)
    person, verdict = approver(), request.form.get("verdict", "")
    if verdict not in ("approved", "rejected"):
        abort(400)
    said = request.form.get("comment", "").strip()
    client.decide_approval(str(approval), verdict, f"{person}: {said}" if said else person)
    return redirect(request.path, 303)


@app.errorhandler(writ.WritError)
def refused(e: writ.WritError) -> tuple[str, int, dict[str, str]]:
    """Says why writ refuses, such as a verdict that somebody else gave before."""
    return str(e), e.status if isinstance(e, writ.Problem) and e.status >= 400 else 503, {"Content-Type": "text/plain; charset=utf-8"}


@app.after_request
def harden(response: Response) -> Response:
    """Lets no other site put the page into a frame, and no cache keep it."""
    response.headers["Content-Security-Policy"] = "default-src 'none'; form-action 'self'; frame-ancestors 'none'"
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "same-origin"
    return response
