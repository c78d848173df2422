package billing

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
)

func TestWebhook_RemembersPastPlans(t *testing.T) {
	h := start(t, "")
	for i, price := range []string{pricePro, pricePro, priceBusiness} {
		must(t, h.deliver(event(fmt.Sprint("e", i), updated, i, subscription("sub_1", "active", price))))
	}
	must(t, h.deliver(event("e8", deleted, 8, subscription("sub_1", "canceled", priceBusiness))))
	must(t, h.deliver(event("e9", completed, 9, session("sub_2", "pro", nil)))) // this replaces the whole subscription
	var got []string
	for _, p := range h.stored(acme).Past {
		if got = append(got, p.Plan); !p.Until.Equal(noon) {
			t.Errorf("%s was in force until %v, want %v", p.Plan, p.Until, noon)
		}
	}
	if diff := cmp.Diff([]string{"pro", "business", "free"}, got); diff != "" {
		t.Errorf("past plans (-want +got):\n%s", diff)
	}
}

// TestWebhook_ManyChangesForgetNoPastPlan checks that no past plan is forgotten, however often the
// plan changes. For a while, the history is kept as long as a past plan promised.
func TestWebhook_ManyChangesForgetNoPastPlan(t *testing.T) {
	h := start(t, "")
	must(t, h.deliver(event("e0", updated, 0, subscription("sub_1", "active", priceBusiness))))
	for i := range 50 {
		h.now = noon.Add(time.Duration(i) * time.Second)
		status := []string{"unpaid", "active"}[i%2]
		must(t, h.deliver(event(fmt.Sprint("f", i), updated, i+1, subscription("sub_1", status, pricePro))))
	}
	want := []storage.PastPlan{
		{Plan: "business", Until: noon}, {Plan: "pro", Until: noon.Add(48 * time.Second)}, {Plan: "free", Until: noon.Add(49 * time.Second)},
	}
	if diff := cmp.Diff(want, h.stored(acme).Past); diff != "" {
		t.Errorf("past plans (-want +got):\n%s", diff)
	}
}
