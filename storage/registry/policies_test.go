package registry_test

import (
	"errors"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// policy returns a version of a policy with every field set.
func policy(org, id string, version int64) *engine.ActionPolicy {
	most := int64(5000)
	return &engine.ActionPolicy{
		PolicyID:                id,
		Version:                 version,
		OrganizationID:          org,
		AgentID:                 "team-a/*",
		AllowedActionTypes:      []string{"deploy", "sql.*"},
		DeniedActionTypes:       []string{"sql.drop"},
		AllowedResourcePatterns: []string{"prod/**"},
		BlockedResourcePatterns: []string{"prod/secret/**"},
		MaxCostMinor:            &most,
		Currency:                "EUR",
		Status:                  engine.StatusActive,
		UpdatedAt:               noon.Add(time.Duration(version) * time.Nanosecond),
	}
}

func (w *world) putPolicy(p *engine.ActionPolicy) {
	w.Helper()
	created, err := w.PutPolicy(w.ctx, p, 0)
	if !created || err != nil {
		w.Fatalf("PutPolicy(%s v%d) = %v, %v; want true, nil", p.PolicyID, p.Version, created, err)
	}
}

func (w *world) policies(org string, limit int) []*engine.ActionPolicy {
	w.Helper()
	return storagetest.All(w, limit, func(p storage.Page) ([]*engine.ActionPolicy, string, error) {
		return w.ListPolicies(w.ctx, org, p)
	})
}

var policyTests = []test{
	{"EachPolicy calls f with the newest version of every policy of every organization", func(w *world) {
		want := map[string]*engine.ActionPolicy{}
		for _, p := range []*engine.ActionPolicy{
			policy("a", "p", 1), policy("a", "p", 3), policy("a", "p\x00", 1), policy("a", "q", 2), policy("ab", "p", 1), policy("b", "p", 300),
		} {
			w.putPolicy(p)
			want[p.OrganizationID+" "+p.PolicyID] = p
		}
		got := map[string]*engine.ActionPolicy{}
		w.Must("EachPolicy", w.EachPolicy(w.ctx, func(p *engine.ActionPolicy) error {
			if _, twice := got[p.OrganizationID+" "+p.PolicyID]; twice {
				w.Errorf("EachPolicy calls f twice with %s of %s", p.PolicyID, p.OrganizationID)
			}
			got[p.OrganizationID+" "+p.PolicyID] = p
			return nil
		}))
		w.WantSame("EachPolicy", got, want)
		enough := errors.New("enough")
		w.WantErr("EachPolicy that is stopped", w.EachPolicy(w.ctx, func(*engine.ActionPolicy) error { return enough }), enough)
	}},
	{"PutPolicy stores a version and Policy returns the newest", func(w *world) {
		_, err := w.Policy(w.ctx, "org", "p")
		w.WantErr("Policy before", err, storage.ErrNotFound)
		for _, v := range []int64{1, 2, 300} {
			p := policy("org", "p", v)
			w.putPolicy(p)
			got, err := w.Policy(w.ctx, "org", "p")
			w.Must("Policy", err)
			w.WantSame("Policy", got, p)
		}
		_, err = w.Policy(w.ctx, "org", "p\x00")
		w.WantErr("Policy of a longer id", err, storage.ErrNotFound)
	}},
	{"PutPolicy must return ErrConflict when a version that is equal or newer is stored", func(w *world) {
		w.putPolicy(policy("org", "p", 5))
		w.putPolicy(policy("org", "p", 7))
		for _, v := range []int64{-1, 1, 5, 6, 7} {
			p := policy("org", "p", v)
			p.AgentID = "another"
			created, err := w.PutPolicy(w.ctx, p, 0)
			if created || !errors.Is(err, storage.ErrConflict) {
				w.Errorf("PutPolicy(v%d) = %v, %v; want false, ErrConflict", v, created, err)
			}
		}
		want := []*engine.ActionPolicy{policy("org", "p", 7), policy("org", "p", 5)}
		w.WantSame("ListPolicies", w.policies("org", 10), want)
	}},
	{"the same version with the same content (UpdatedAt aside) must succeed and change nothing", func(w *world) {
		w.putPolicy(policy("org", "p", 1))
		w.putPolicy(policy("org", "p", 2))
		for _, v := range []int64{1, 2} {
			p := policy("org", "p", v)
			p.UpdatedAt = noon.Add(time.Hour)
			created, err := w.PutPolicy(w.ctx, p, 0)
			if created || err != nil {
				w.Errorf("PutPolicy(v%d again) = %v, %v; want false, nil", v, created, err)
			}
		}
		want := []*engine.ActionPolicy{policy("org", "p", 2), policy("org", "p", 1)}
		w.WantSame("ListPolicies", w.policies("org", 10), want)
	}},
	{"an empty list is the same content as none", func(w *world) {
		p := policy("org", "p", 1)
		p.DeniedActionTypes, p.AllowedActionTypes = nil, nil
		w.putPolicy(p)
		q := policy("org", "p", 1)
		q.DeniedActionTypes, q.AllowedActionTypes = []string{}, []string{}
		created, err := w.PutPolicy(w.ctx, q, 0)
		if created || err != nil {
			w.Errorf("PutPolicy = %v, %v; want false, nil", created, err)
		}
	}},
	{"PutPolicy must return a LimitError when the version is a new policy's first and the organization has maxPolicies", func(w *world) {
		for _, id := range []string{"a", "b"} {
			created, err := w.PutPolicy(w.ctx, policy("org", id, 1), 2)
			if !created || err != nil {
				w.Fatalf("PutPolicy(%s) = %v, %v; want true, nil", id, created, err)
			}
		}
		_, err := w.PutPolicy(w.ctx, policy("org", "c", 1), 2)
		w.wantLimit("PutPolicy(c)", err, 2)
		_, err = w.Policy(w.ctx, "org", "c")
		w.WantErr("Policy(c)", err, storage.ErrNotFound)
		_, err = w.PutPolicy(w.ctx, policy("org", "a", 2), 2)
		w.Must("PutPolicy of another version at the limit", err)
		_, err = w.PutPolicy(w.ctx, policy("org", "a", 2), 1)
		w.Must("PutPolicy of the same version beyond the limit", err)
		_, err = w.PutPolicy(w.ctx, policy("other", "a", 1), 1)
		w.Must("PutPolicy of another organization", err)
		_, err = w.PutPolicy(w.ctx, policy("org", "c", 1), 0)
		w.Must("PutPolicy without a limit", err)
	}},
	{"PutPolicy must return a LimitError when the versions of all policies take more than maxPolicies times VersionBytes", func(w *world) {
		large := func(org, id string, version int64) *engine.ActionPolicy {
			p := policy(org, id, version)
			p.AllowedActionTypes = []string{strings.Repeat("a", registry.VersionBytes*2/5)}
			return p
		}
		put := func(p *engine.ActionPolicy, maxPolicies int) error {
			_, err := w.PutPolicy(w.ctx, p, maxPolicies)
			return err
		}
		w.Must("PutPolicy of version 1", put(large("org", "a", 1), 1))
		w.Must("PutPolicy of version 2", put(large("org", "a", 2), 1))
		w.wantLimit("PutPolicy of version 3", put(large("org", "a", 3), 1), registry.VersionBytes)
		w.Must("PutPolicy of a small version 3", put(policy("org", "a", 3), 1))
		w.Must("PutPolicy of a version that is stored", put(large("org", "a", 2), 1))
		w.Must("PutPolicy of another organization", put(large("other", "a", 3), 1))
		w.Must("PutPolicy with room for two policies", put(large("org", "b", 1), 2))
		w.Must("PutPolicy with room for two policies", put(large("org", "b", 2), 2))
		w.wantLimit("PutPolicy of another policy", put(large("org", "b", 3), 2), 2*registry.VersionBytes)
		w.Must("PutPolicy without a limit", put(large("org", "b", 3), 0))
	}},
	{"ListPolicies returns all versions, newest first within a policy, policies by id", func(w *world) {
		ids := []string{"", "\x00", "\x00\x01", "a", "a\x00", "a\x00b", "a\x01", "aa", "b", "ÿ"}
		var want []*engine.ActionPolicy
		for _, id := range ids {
			for _, v := range []int64{9, 2, 1} {
				want = append(want, policy("org", id, v))
			}
		}
		for i := len(want) - 1; i >= 0; i-- {
			w.putPolicy(want[i])
		}
		for _, limit := range []int{1, 2, 3, len(want), len(want) + 1} {
			w.WantSame("ListPolicies", w.policies("org", limit), want)
		}
		for _, id := range ids {
			got, err := w.Policy(w.ctx, "org", id)
			w.Must("Policy", err)
			w.WantSame("Policy", got, policy("org", id, 9))
		}
	}},
}

func (w *world) wantLimit(what string, err error, limit int) {
	w.Helper()
	var got *storage.LimitError
	if !errors.As(err, &got) || got.Limit != limit || got.What == "" {
		w.Errorf("%s = %v, want a LimitError of %d", what, err, limit)
	}
}
