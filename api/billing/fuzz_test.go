package billing

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// FuzzRead processes signed events with any content. No event may panic, change an organization
// that it does not name, or give a plan that is not sold.
func FuzzRead(f *testing.F) {
	for _, e := range []obj{
		event("e1", created, 0, subscription("sub_1", "active", pricePro)),
		event("e2", deleted, 1, subscription("sub_1", "canceled", pricePro)),
		event("e3", completed, 2, session("sub_1", "business", nil)),
		event("e4", failed, 3, invoice("sub_1")),
	} {
		data, err := json.Marshal(e)
		must(f, err)
		f.Add(data)
	}
	b, err := New(Config{
		Store: broken{}, Key: testKey, WebhookSecret: testSecret, PortalURL: "https://portal.example",
		Prices: map[string]string{"pro": pricePro, "business": priceBusiness}, Now: func() time.Time { return noon },
	})
	must(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, header := signRaw(data, testSecret, noon)
		e, err := b.verify(data, header)
		if err != nil {
			wantRefused(t, err)
			return
		}
		org, c, err := b.read(&e)
		if err != nil {
			wantRefused(t, err)
			return
		}
		if c == nil {
			return
		}
		s := storage.Subscription{OrganizationID: org}
		if c.apply(&s) && (s.OrganizationID != org || s.Plan != "pro" && s.Plan != "business" && s.Plan != engine.FreePlan) {
			t.Errorf("apply = %+v, want a plan that is sold, of %q", s, org)
		}
		if c.apply(&s) {
			t.Errorf("the same event applies twice: %s", data)
		}
	})
}

func wantRefused(t *testing.T, err error) {
	t.Helper()
	var refused *Error
	if !errors.As(err, &refused) {
		t.Errorf("error = %v, want a refusal", err)
	}
}
