"""Asks a writ server with the client that openapi-python-client made of api/openapi.yaml."""

import os
import uuid
from datetime import datetime, timezone

from client import AuthenticatedClient
from client.api.evaluation import evaluate
from client.api.history import list_authorizations
from client.models import ActionIntent, AuthorizationList, Cost, EvaluateRequest, PolicyEvaluationResult, Problem

client = AuthenticatedClient(os.environ["WRIT_URL"], os.environ["WRIT_API_KEY"])
policy = uuid.UUID(os.environ["WRIT_POLICY_ID"])
intent = ActionIntent(
    intent_id=uuid.uuid4(),
    policy_id=policy,
    agent_id=os.environ["WRIT_AGENT_ID"],
    action_type="payment.refund",
    resource="https://api.payments.example/v1/refunds",
    cost=Cost(1250, "EUR"),
    issued_at=datetime.now(timezone.utc),
)
decided = evaluate.sync(client=client, body=EvaluateRequest(policy, intent))
assert isinstance(decided, PolicyEvaluationResult), decided
print(decided.approved, decided.decision)
intent.cost = Cost(1251, "EUR")
refused = evaluate.sync(client=client, body=EvaluateRequest(policy, intent))
assert isinstance(refused, Problem), refused
print(refused.status, refused.code)
page = list_authorizations.sync(client=client, intent_id=str(intent.intent_id))
assert isinstance(page, AuthorizationList), page
for row in page.data:
    print(row.decision, row.decision_id == decided.decision_id)
