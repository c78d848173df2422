// Package corpustest generates intents for tests under the policy of package corpus.
package corpustest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
)

// Intents returns n valid intents under [corpus.ReferencePolicy]. About half of them are
// allowed. The others are refused, for various reasons.
func Intents(n int, seed uint64) []*engine.Intent {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	r := rand.New(rand.NewChaCha8(key))
	intents := make([]*engine.Intent, n)
	for i := range intents {
		in := corpus.AllowedIntent()
		in.IntentID = uuid(r)
		in.ActionType = pick(r, allowedTypes())
		in.Resource = pick(r, allowedResources()) + suffix(r)
		in.Cost.AmountMinor = int64(r.IntN(corpus.MaxCost))
		spoil(r, in)
		intents[i] = in
	}
	return intents
}

// spoil changes about half of the intents so that they are not allowed.
func spoil(r *rand.Rand, in *engine.Intent) {
	switch r.IntN(12) {
	case 0:
		in.ActionType = pick(r, []string{"sql.drop", "secret.read", "billing.close", "unheard.of"})
	case 1:
		in.Resource = pick(r,
			[]string{"https://api.example.com/v1/admin/users", "https://API.example.com:443/v1/./admin/users",
				"files/reports/board/q3", "db/orders/pii", "elsewhere"})
	case 2:
		in.Cost.AmountMinor = corpus.MaxCost + 1 + int64(r.IntN(1000))
	case 3:
		in.Cost.Currency = "USD"
	case 4:
		in.AgentID = "agent-" + fmt.Sprint(r.IntN(1000))
	case 5:
		in.Cost = nil
	case 6:
		in.Metadata = nil
	}
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func allowedTypes() []string {
	return []string{"payment.charge", "http_post", "sql.read", "email.send", "cache.flush.all", "search.products"}
}

func allowedResources() []string {
	return []string{"https://api.example.com/v1/orders/", "https://api.stripe.com/v1/charges/", "db/orders/",
		"files/reports/2026/", "https://pay.internal.example.com/x/"}
}

func suffix(r *rand.Rand) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	var b strings.Builder
	for range 4 + r.IntN(12) {
		b.WriteByte(letters[r.IntN(len(letters))])
	}
	return b.String()
}

func uuid(r *rand.Rand) string {
	hi, lo := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", uint32(hi>>32), uint16(hi>>16), hi&0xFFF, 0x8000|lo>>50,
		lo&0xFFFFFFFFFFFF)
}
