package condition

import "testing"

// bare removes the optional members of an intent.
func bare(in *intent) { in.Cost, in.Metadata = nil, nil }

func TestDecision_Rules_MatchObject(t *testing.T) {
	tests := []struct {
		name string
		doc  string
		edit func(*intent)
		want bool
	}{
		{"{} always matches", `{}`, bare, true},
		{"implicit equality", `{"action_type":"deploy.web"}`, nil, true},
		{"implicit equality of another value", `{"action_type":"deploy"}`, nil, false},
		{"a prefix intent. is accepted", `{"intent.action_type":"deploy.web"}`, nil, true},
		{"every key must hold", `{"action_type":"deploy.web","agent_id":"x"}`, nil, false},
		{"a string with * is a glob of action types", `{"action_type":"deploy.*"}`, nil, true},
		{"a string with * is a glob of resources", `{"resource":"prod/**"}`, nil, true},
		{"* stops at a slash", `{"resource":"prod/*"}`, nil, false},
		{"a string with * is a glob of agents", `{"agent_id":"team-a/*"}`, nil, true},
		{"a string with * is a glob of metadata", `{"metadata.env":"pr*"}`, nil, true},
		{"a string without * is no glob", `{"resource":"prod/{web,db}/api"}`, nil, false},
		{"integer equality", `{"cost.amount_minor":5000}`, nil, true},
		{"policy.version", `{"policy.version":3}`, nil, true},
		{"agent.status", `{"agent.status":"active"}`, nil, true},
		{"agent.id", `{"agent.id":"team-a/deployer"}`, nil, true},
		{"a key with a dot", `{"metadata.a.b":"dotted"}`, nil, true},
		{"the decisions' example", `{"action_type":"deploy.web","resource":"prod/**","cost.amount_minor":{"$gt":4999},"metadata.env":{"$in":["prod","dr"]}}`, nil, true},

		{"$eq", `{"metadata.env":{"$eq":"prod"}}`, nil, true},
		{"$eq is literal", `{"metadata.env":{"$eq":"p*"}}`, nil, false},
		{"$eq of a missing field", `{"metadata.env":{"$eq":"prod"}}`, bare, false},
		{"$ne", `{"metadata.env":{"$ne":"dr"}}`, nil, true},
		{"$ne of an equal value", `{"metadata.env":{"$ne":"prod"}}`, nil, false},
		{"$ne matches a missing field", `{"metadata.env":{"$ne":"prod"}}`, bare, true},
		{"$ne matches a missing cost", `{"cost.amount_minor":{"$ne":1}}`, bare, true},
		{"$gt", `{"cost.amount_minor":{"$gt":4999}}`, nil, true},
		{"$gt at the bound", `{"cost.amount_minor":{"$gt":5000}}`, nil, false},
		{"$gt of a missing field", `{"cost.amount_minor":{"$gt":-1}}`, bare, false},
		{"$gte", `{"cost.amount_minor":{"$gte":5000}}`, nil, true},
		{"$gte of a missing field", `{"cost.amount_minor":{"$gte":0}}`, bare, false},
		{"$lt", `{"cost.amount_minor":{"$lt":5000}}`, nil, false},
		{"$lt of a missing field", `{"cost.amount_minor":{"$lt":9}}`, bare, false},
		{"$lte", `{"cost.amount_minor":{"$lte":5000}}`, nil, true},
		{"$lte of a missing field", `{"cost.amount_minor":{"$lte":9}}`, bare, false},
		{"$gt of strings is by bytes", `{"metadata.env":{"$gt":"dr"}}`, nil, true},
		{"$gt of times is by time", `{"issued_at":{"$gt":"2026-01-31T12:30:00+01:00"}}`, nil, true},
		{"equality of times is by time", `{"issued_at":"2026-01-31T13:00:00+01:00"}`, nil, true},
		{"$in", `{"metadata.env":{"$in":["prod","dr"]}}`, nil, true},
		{"$in of one", `{"metadata.env":{"$in":["dr"]}}`, nil, false},
		{"$in of integers", `{"cost.amount_minor":{"$in":[1,5000]}}`, nil, true},
		{"$in of times", `{"issued_at":{"$in":["2026-01-31T12:00:00Z","2020-01-01T00:00:00Z"]}}`, nil, true},
		{"$in of a missing field", `{"metadata.env":{"$in":["prod"]}}`, bare, false},
		{"$nin", `{"metadata.env":{"$nin":["prod","dr"]}}`, nil, false},
		{"$nin matches a missing field", `{"metadata.env":{"$nin":["prod","dr"]}}`, bare, true},
		{"$exists", `{"metadata.env":{"$exists":true}}`, nil, true},
		{"$exists of an empty value", `{"metadata.empty":{"$exists":true}}`, nil, true},
		{"$exists of a missing field", `{"metadata.env":{"$exists":true}}`, bare, false},
		{"$exists false of a missing field", `{"metadata.env":{"$exists":false}}`, bare, true},
		{"$exists of the cost", `{"cost":{"$exists":true}}`, nil, true},
		{"$exists false of the cost", `{"cost":{"$exists":false}}`, bare, true},
		{"$exists of a member of the cost", `{"cost.currency":{"$exists":true}}`, bare, false},
		{"$exists of the metadata", `{"metadata":{"$exists":true}}`, bare, false},
		{"$exists of a field that is always there", `{"agent_id":{"$exists":false}}`, bare, false},
		{"$glob", `{"resource":{"$glob":"prod/*/api"}}`, nil, true},
		{"$glob of alternatives", `{"resource":{"$glob":"prod/{web,db}/api"}}`, nil, true},
		{"$glob of a list", `{"resource":{"$glob":["staging/**","prod/**"]}}`, nil, true},
		{"$glob of a missing field", `{"metadata.env":{"$glob":"*"}}`, bare, false},
		{"$regex is found anywhere", `{"resource":{"$regex":"w[aeo]b"}}`, nil, true},
		{"$regex with an anchor", `{"resource":{"$regex":"^web"}}`, nil, false},
		{"$regex of a missing field", `{"metadata.env":{"$regex":""}}`, bare, false},
		{"several operators", `{"cost.amount_minor":{"$gt":1,"$lt":5000}}`, nil, false},

		{"$not of operators", `{"cost.amount_minor":{"$not":{"$gt":5000}}}`, nil, true},
		{"$not matches a missing field", `{"cost.amount_minor":{"$not":{"$gt":0}}}`, bare, true},
		{"$not of several operators", `{"cost.amount_minor":{"$not":{"$gt":1,"$lt":9}}}`, nil, true},
		{"$not of a match object", `{"$not":{"action_type":"deploy.web"}}`, nil, false},
		{"$not of {}", `{"$not":{}}`, nil, false},
		{"$and", `{"$and":[{"action_type":"deploy.web"},{"metadata.env":"prod"}]}`, nil, true},
		{"$and beside a field", `{"action_type":"x","$and":[{"metadata.env":"prod"}]}`, nil, false},
		{"$or", `{"$or":[{"action_type":"x"},{"metadata.env":"prod"}]}`, nil, true},
		{"$or of nothing that holds", `{"$or":[{"action_type":"x"},{"metadata.env":"dr"}]}`, nil, false},
		{"$nor", `{"$nor":[{"action_type":"x"},{"metadata.env":"dr"}]}`, nil, true},
		{"$nor of one that holds", `{"$nor":[{"action_type":"x"},{"metadata.env":"prod"}]}`, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkCondition(t, tt.doc, intentWith(tt.edit), tt.want) })
	}
}

func TestDecision_Rules_Tree(t *testing.T) {
	leaf := func(field, op, value string) string {
		return `{"field":"` + field + `","op":"` + op + `","value":` + value + `}`
	}
	tests := []struct {
		name string
		doc  string
		edit func(*intent)
		want bool
	}{
		{"a leaf alone", leaf("action_type", "eq", `"deploy.web"`), nil, true},
		{"fact and operator", `{"fact":"cost.amount_minor","operator":"greaterThan","value":4999}`, nil, true},
		{"all", `{"all":[` + leaf("metadata.env", "eq", `"prod"`) + `,` + leaf("cost.amount_minor", "gt", `1`) + `]}`, nil, true},
		{"all with one that fails", `{"all":[` + leaf("metadata.env", "eq", `"dr"`) + `,` + leaf("cost.amount_minor", "gt", `1`) + `]}`, nil, false},
		{"any", `{"any":[` + leaf("metadata.env", "eq", `"dr"`) + `,` + leaf("cost.amount_minor", "gt", `1`) + `]}`, nil, true},
		{"any with none", `{"any":[` + leaf("metadata.env", "eq", `"dr"`) + `,` + leaf("cost.amount_minor", "gt", `5000`) + `]}`, nil, false},
		{"not", `{"not":` + leaf("metadata.env", "eq", `"prod"`) + `}`, nil, false},
		{"not matches a missing field", `{"not":` + leaf("metadata.env", "eq", `"prod"`) + `}`, bare, true},
		{"not all", `{"not":{"all":[` + leaf("metadata.env", "eq", `"prod"`) + `,` + leaf("cost", "exists", `true`) + `]}}`, nil, false},
		{"not not", `{"not":{"not":` + leaf("metadata.env", "eq", `"prod"`) + `}}`, nil, true},

		{"eq of a missing field", leaf("metadata.env", "eq", `"prod"`), bare, false},
		{"equal", leaf("metadata.env", "equal", `"prod"`), nil, true},
		{"ne", leaf("metadata.env", "ne", `"prod"`), nil, false},
		{"ne matches a missing field", leaf("metadata.env", "ne", `"prod"`), bare, true},
		{"notEqual", leaf("metadata.env", "notEqual", `"dr"`), nil, true},
		{"gt", leaf("cost.amount_minor", "gt", `5000`), nil, false},
		{"gt of a missing field", leaf("cost.amount_minor", "gt", `-1`), bare, false},
		{"gte", leaf("cost.amount_minor", "gte", `5000`), nil, true},
		{"greaterThanInclusive", leaf("cost.amount_minor", "greaterThanInclusive", `5001`), nil, false},
		{"lt", leaf("cost.amount_minor", "lt", `5001`), nil, true},
		{"lessThan", leaf("cost.amount_minor", "lessThan", `5000`), nil, false},
		{"lessThan of a missing field", leaf("cost.amount_minor", "lessThan", `5000`), bare, false},
		{"lte", leaf("cost.amount_minor", "lte", `5000`), nil, true},
		{"lessThanInclusive", leaf("cost.amount_minor", "lessThanInclusive", `4999`), nil, false},
		{"in", leaf("metadata.env", "in", `["dr","prod"]`), nil, true},
		{"in of a missing field", leaf("metadata.env", "in", `["dr","prod"]`), bare, false},
		{"nin", leaf("metadata.env", "nin", `["dr","prod"]`), nil, false},
		{"notIn", leaf("metadata.env", "notIn", `["dr"]`), nil, true},
		{"notIn matches a missing field", leaf("metadata.env", "notIn", `["dr"]`), bare, true},
		{"exists", leaf("metadata.env", "exists", `true`), nil, true},
		{"exists false", leaf("metadata.env", "exists", `false`), bare, true},
		{"glob", leaf("resource", "glob", `"prod/**"`), nil, true},
		{"glob of a missing field", leaf("metadata.env", "glob", `"**"`), bare, false},
		{"regex", leaf("agent_id", "regex", `"^team-[ab]/"`), nil, true},
		{"regex of a missing field", leaf("metadata.env", "regex", `"."`), bare, false},
		{"contains", leaf("resource", "contains", `"/web/"`), nil, true},
		{"contains of a missing field", leaf("metadata.env", "contains", `""`), bare, false},
		{"doesNotContain", leaf("resource", "doesNotContain", `"/web/"`), nil, false},
		{"doesNotContain matches a missing field", leaf("metadata.env", "doesNotContain", `"x"`), bare, true},
		{"startsWith", leaf("resource", "startsWith", `"prod/"`), nil, true},
		{"endsWith", leaf("resource", "endsWith", `"/db"`), nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkCondition(t, tt.doc, intentWith(tt.edit), tt.want) })
	}
}
