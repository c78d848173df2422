// Package corpus generates policies, rules and intents. They are for measuring and fuzzing
// writ. The same arguments always give the same documents.
package corpus

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"writ.example/writ/engine"
)

// PolicyID, Organization and Agent are the ids in [ReferencePolicy] and in the intents.
const (
	PolicyID     = "7b0c2f6e-3d1a-4c55-9a53-0c1f1a2b3c4d"
	Organization = "acme"
	Agent        = "checkout-bot"
)

// MaxCost is the cap of [ReferencePolicy], in minor units of Currency.
const (
	MaxCost  = 50_000
	Currency = "EUR"
)

// Epoch is the time at which everything in the corpus was created.
func Epoch() time.Time { return time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC) }

// ReferencePolicy returns the policy that all published figures are measured with. It has 20
// allowed and 10 denied action types, 10 allowed and 5 blocked resource patterns, and a cap.
func ReferencePolicy() *engine.ActionPolicy {
	limit := int64(MaxCost)
	return &engine.ActionPolicy{
		PolicyID:       PolicyID,
		Version:        3,
		OrganizationID: Organization,
		AgentID:        Agent,
		AllowedActionTypes: []string{
			"http_get", "http_post", "payment.charge", "payment.refund", "payment.capture",
			"sql.read", "sql.write", "sql.explain", "email.send", "email.draft",
			"file.read", "file.write", "queue.publish", "queue.consume", "deploy.preview",
			"deploy.staging", "ticket.create", "ticket.update", "cache.*", "search.*",
		},
		DeniedActionTypes: []string{
			"sql.drop", "sql.truncate", "payment.payout", "deploy.production", "file.delete",
			"email.bulk", "iam.*", "secret.*", "billing.*", "shell.exec",
		},
		AllowedResourcePatterns: []string{
			"https://api.example.com/v1/**", "https://api.stripe.com/v1/charges/*",
			"https://api.stripe.com/v1/refunds/*",
			"https://*.internal.example.com/**", "db/orders/*", "db/customers/{read,write}/*",
			"queue/checkout-?", "mail/*@example.com", "files/reports/**", "deploy/{preview,staging}/**",
		},
		BlockedResourcePatterns: []string{
			"https://api.example.com/v1/admin/**", "https://*.internal.example.com/secrets/**",
			"db/*/pii", "files/reports/board/**", "**/.env",
		},
		MaxCostMinor: &limit,
		Currency:     Currency,
		Status:       engine.StatusActive,
		UpdatedAt:    Epoch(),
	}
}

// Rules returns n active rules as organizations write them. Each rule requires an equality of
// an action type, an agent or a metadata value. Most rules require something else as well. No
// rule decides [AllowedIntent].
func Rules(n int, seed uint64) []engine.Rule {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	r := rand.New(rand.NewChaCha8(key))
	rules := make([]engine.Rule, n)
	for i := range rules {
		rules[i] = engine.Rule{
			ID:        fmt.Sprintf("rule-%05d", i),
			Name:      fmt.Sprintf("Rule %d", i),
			Condition: condition(r, i),
			Action:    pick(r, actions()),
			Priority:  int64(r.IntN(20) * 10),
			IsActive:  true,
			CreatedAt: Epoch().Add(time.Duration(i) * time.Second),
			UpdatedAt: Epoch().Add(time.Duration(i) * time.Second),
		}
	}
	return rules
}

func actions() []string {
	return []string{
		`{"decision":"deny","reason":"not during the freeze"}`,
		`{"decision":"approval_required","reason":"a person has to look at this"}`,
		`{"decision":"allow","reason":"cleared by the platform team"}`,
	}
}

// condition returns the condition of the i-th rule. CEL can run each form of it.
func condition(r *rand.Rand, i int) string {
	amount := 100 * (1 + r.IntN(400))
	switch i % 5 {
	case 0:
		return fmt.Sprintf(`{"action_type":"job.%d","cost.amount_minor":{"$gt":%d}}`, i, amount)
	case 1:
		return fmt.Sprintf(`{"agent_id":"agent-%d","resource":"prod/**"}`, i)
	case 2:
		return fmt.Sprintf(`{"metadata.env":"env-%d","action_type":{"$in":["sql.write","deploy.staging"]}}`, i)
	case 3:
		return fmt.Sprintf(
			`{"all":[{"field":"action_type","op":"eq","value":"task.%d"},{"field":"cost.amount_minor","op":"gte","value":%d}]}`, i, amount,
		)
	default:
		return fmt.Sprintf(`{"cel":"intent.action_type == 'step.%d' && intent.cost.amount_minor > %d"}`, i, amount)
	}
}

// AllowedIntent returns an intent that [ReferencePolicy] allows and that none of
// [Rules] matches.
func AllowedIntent() *engine.Intent {
	return &engine.Intent{
		IntentID:   "123e4567-e89b-12d3-a456-426614174000",
		PolicyID:   PolicyID,
		AgentID:    Agent,
		ActionType: "payment.charge",
		Resource:   "https://api.stripe.com/v1/charges/ch_3PqR7sT9uV",
		Cost:       &engine.Cost{AmountMinor: 1250, Currency: Currency},
		Metadata:   map[string]string{"env": "prod", "order": "A-1009", "team": "checkout"},
		IssuedAt:   "2026-01-31T09:30:00Z",
	}
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }
