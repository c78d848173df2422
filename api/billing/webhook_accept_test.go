package billing

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestWebhook_IgnoresTheOtherMode(t *testing.T) {
	for name, tc := range map[string]struct {
		key  string
		live bool
		want string
	}{
		"test event, test key":            {"sk_test_1", false, "pro"},
		"live event, test key":            {"sk_test_1", true, ""},
		"live event, live key":            {"sk_live_1", true, "pro"},
		"test event, live key":            {"sk_live_1", false, ""},
		"test event, restricted live key": {"rk_live_1", false, ""},
		"live event, a key of no mode":    {"sk_1", true, "pro"},
		"test event, a key of no mode":    {"sk_1", false, "pro"},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, "")
			h.cfg.Key = tc.key
			must(t, h.deliver(event("e1", created, 0, subscription("sub_1", "active", pricePro), obj{"livemode": tc.live})))
			if tc.want == "" {
				h.wantPlan(acme, "", "")
			} else {
				h.wantPlan(acme, tc.want, "active")
			}
		})
	}
}

func TestWebhook_AnEventOfTheFutureIsNone(t *testing.T) {
	h := start(t, "")
	seconds := int(Tolerance / time.Second)
	must(t, h.deliver(event("e1", created, seconds, subscription("sub_1", "active", pricePro))))
	wantCode(t, "Webhook with an event of the future",
		h.deliver(event("e2", updated, seconds+1, subscription("sub_1", "active", priceBusiness))), CodeInvalidEvent)
	h.wantPlan(acme, "pro", "active")
}

func TestWebhook_Signature(t *testing.T) {
	h := start(t, "")
	e := event("e1", created, 0, subscription("sub_1", "active", pricePro))
	body, good := sign(t, e, testSecret, noon)
	_, forged := sign(t, e, "whsec_of_another", noon)
	_, empty := sign(t, e, "", noon)
	at := func(d time.Duration) string {
		_, header := sign(t, e, testSecret, noon.Add(d))
		return header
	}
	_, hash, _ := strings.Cut(good, ",")
	for name, c := range map[string]struct{ header, code string }{
		"missing":               {"", CodeInvalidSignature},
		"garbage":               {"garbage", CodeInvalidSignature},
		"without a time":        {hash, CodeInvalidSignature},
		"without a signature":   {fmt.Sprintf("t=%d", noon.Unix()), CodeInvalidSignature},
		"of another scheme":     {strings.Replace(good, "v1=", "v0=", 1), CodeInvalidSignature},
		"forged":                {forged, CodeInvalidSignature},
		"by the empty secret":   {empty, CodeInvalidSignature},
		"of another time":       {fmt.Sprintf("t=%d,%s", noon.Unix()+1, hash), CodeInvalidSignature},
		"with two times":        {fmt.Sprintf("t=%d,%s", noon.Unix()+900, good), CodeInvalidSignature},
		"too old":               {at(-Tolerance - time.Second), CodeSignatureExpired},
		"of the far future":     {at(Tolerance + time.Second), CodeSignatureExpired},
		"overflowing":           {"t=99999999999999999999," + hash, CodeInvalidSignature},
		"of the end of all":     {fmt.Sprintf("t=%d,%s", int64(1)<<62, hash), CodeInvalidSignature},
		"of before the big one": {fmt.Sprintf("t=-%d,%s", int64(1)<<62, hash), CodeInvalidSignature},
	} {
		err := h.Webhook(context.Background(), body, c.header)
		wantCode(t, "Webhook with a signature "+name, err, c.code)
		h.wantNoSecret(err)
		h.wantPlan(acme, "", "")
	}
	tampered := []byte(strings.Replace(string(body), pricePro, priceBusiness, 1))
	wantCode(t, "Webhook with another body", h.Webhook(context.Background(), tampered, good), CodeInvalidSignature)
	for name, header := range map[string]string{
		"just in time": at(-Tolerance), "early": at(Tolerance),
		"of a secret that is being rolled": good + "," + strings.Split(forged, ",")[1],
	} {
		if err := h.Webhook(context.Background(), body, header); err != nil {
			t.Errorf("Webhook with a signature %s = %v, want nil", name, err)
		}
	}
	h.wantPlan(acme, "pro", "active")
}

func TestWebhook_SignedButNoEvent(t *testing.T) {
	h := start(t, "")
	sub := subscription("sub_1", "active", pricePro)
	for name, e := range map[string]any{
		"not an object":            []string{"x"},
		"another object":           obj{"object": "v2.core.event", "id": "e1"},
		"no id":                    event("", created, 0, sub),
		"no time":                  event("e1", created, 0, sub, obj{"created": 0}),
		"a time beyond all":        event("e1", created, 0, sub, obj{"created": int64(math.MaxInt64)}),
		"no data":                  event("e1", created, 0, sub, obj{"data": nil}),
		"no subscription":          event("e1", created, 0, obj{}),
		"a subscription of text":   event("e1", created, 0, obj{"id": 7}),
		"a session of text":        event("e1", completed, 0, obj{"metadata": "acme"}),
		"an invoice of many":       event("e1", failed, 0, obj{"parent": []int{1}}),
		"a subscription in stasis": event("e1", updated, 0, subscription("sub_1", "", pricePro)),
	} {
		body, header := sign(t, e, testSecret, noon)
		err := h.Webhook(context.Background(), body, header)
		wantCode(t, "Webhook with "+name, err, CodeInvalidEvent)
		h.wantPlan(acme, "", "")
	}
}
