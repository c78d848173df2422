package rego

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/rego"

	"writ.example/writ/engine/resource"
	"writ.example/writ/internal/must"
)

// plainPieces are parts of resources that are just plain or just not plain.
var plainPieces = []string{
	"https://", "http://", "api.example.com", "h", ":8443", ":443", ":0", "/", "/v1", "?", "?a=b", "#", "@", " ", ".", "..", "a", "Z", "9",
	":", "urn:", "ftp:", "k8s/prod", "payments", "%2e", ";", ",", "[0]", "{x}", "\\", "xn--", "-", "é", "\x7f", "\t",
}

// plainResources generates resources, some of them plain.
func plainResources(n int) (all []string) {
	g, rng := newGenerator(30), rand.New(rand.NewPCG(30, 2))
	for i := range n {
		if i%4 == 0 {
			all = append(all, g.resource())
			continue
		}
		var s strings.Builder
		if rng.IntN(2) == 0 {
			s.WriteString("https://api.example.com/")
		}
		for range 1 + rng.IntN(5) {
			s.WriteString(plainPieces[rng.IntN(len(plainPieces))])
		}
		all = append(all, s.String())
	}
	return append(all, "", "/", "https://h/?", strings.Repeat("a", resource.MaxLength), strings.Repeat("a", resource.MaxLength+1))
}

// TestLower_ReadsPlainResources checks that the module has the readings of a plain resource that Go
// has, and no readings of another resource.
func TestLower_ReadsPlainResources(t *testing.T) {
	resources := plainResources(20_000)
	files := must.Get(Lower(samplePolicy(), nil, nil))(t)
	results := must.Get(opa.New(
		opa.Query(`x := {text: read | some text in input; read := data.`+PackageName(policyID)+`.plain_readings(text)}`),
		opa.Module(files[0].Name, files[0].Source), opa.Input(resources)).Eval(t.Context()))(t)
	got, ok := results[0].Bindings["x"].(map[string]any)
	if !ok {
		t.Fatalf("the readings are %v", results)
	}
	plain := map[string]bool{}
	for _, text := range resources {
		r, err := resource.Read(text)
		switch read := got[text]; {
		case read == nil:
		case err != nil:
			t.Errorf("Rego reads %q, and Go says %v", text, err)
		default:
			plain[text] = true
			if diff := cmp.Diff(must.Get(ast.JSON(readingsTerm(&r).Value))(t), read); diff != "" {
				t.Errorf("the readings of %q differ (-Go +Rego):\n%s", text, diff)
			}
		}
		if isPlain(text) != plain[text] {
			t.Errorf("%q is plain: %v in Go, %v in Rego", text, isPlain(text), plain[text])
		}
	}
	if len(plain) < 2000 || len(plain) > 15_000 {
		t.Errorf("%d of the resources are plain: want more of both kinds", len(plain))
	}
}

// isPlain reports whether a resource has one of the forms of plain resources. The tests of these forms
// compare them with [resource.Read].
func isPlain(text string) bool {
	return len(text) <= resource.MaxLength && slices.ContainsFunc(resource.PlainForms(), func(f resource.PlainForm) bool {
		is, not := regexp.MustCompile(f.Is), regexp.MustCompile(f.Not)
		return is.MatchString(text) && !not.MatchString(text)
	})
}
