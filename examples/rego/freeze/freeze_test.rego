package deploys.freeze_test

import data.deploys.freeze

deploy(resource, metadata) := {"intent": {
	"action_type": "deploy.rollout",
	"resource": resource,
	"metadata": metadata,
}}

test_production_waits if freeze.match with input as deploy("k8s/prod/web", {"fact.window": "freeze"})

test_staging_is_free if not freeze.match with input as deploy("k8s/staging/web", {"fact.window": "freeze"})

test_no_freeze if not freeze.match with input as deploy("k8s/prod/web", {})
