package rego

import (
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// allowed lists the built-in functions that a module can call. It is an allow-list, so a function
// of a new OPA version is refused until somebody has reviewed it. testdata/builtins.golden lists
// the reviewed functions.
//
// [refusals] says why the others cannot be called.
func allowed() []string {
	return strings.Fields(`
		abs and array.concat array.flatten array.reverse array.slice assign
		base64.decode base64.encode base64.is_valid base64url.decode base64url.encode base64url.encode_no_pad
		bits.and bits.negate bits.or bits.rsh bits.xor
		ceil concat contains count crypto.md5 crypto.sha1 crypto.sha256
		div endswith eq equal floor format_int
		glob.match glob.quote_meta gt gte
		hex.decode hex.encode
		indexof internal.member_2 internal.member_3 internal.template_string intersection
		is_array is_boolean is_null is_number is_object is_set is_string
		json.filter json.is_valid json.marshal json.remove json.unmarshal
		lower lt lte max min minus mul neq
		net.cidr_contains net.cidr_contains_matches net.cidr_intersects net.cidr_is_valid
		numbers.range numbers.range_step
		object.filter object.get object.keys object.remove object.subset object.union object.union_n
		or plus product
		regex.find_all_string_submatch_n regex.find_n regex.is_valid regex.match regex.replace regex.split
		rem replace round
		semver.compare semver.is_valid sort split sprintf startswith
		strings.any_prefix_match strings.any_suffix_match strings.count
		strings.replace_n strings.reverse strings.split_n substring sum
		time.add_date time.clock time.date time.diff time.format
		time.parse_duration_ns time.parse_ns time.parse_rfc3339_ns time.weekday
		to_number trim trim_left trim_prefix trim_right trim_space trim_suffix type_name
		union upper uri.is_valid uri.parse
		urlquery.decode urlquery.encode uuid.parse
		walk
	`)
}

// sandbox returns the capabilities of every module: the functions in the list, and writ.items.
// Callers must not modify them.
var sandbox = sync.OnceValue(func() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(ast.RegoV1))
	names := allowed()
	slices.Sort(names)
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		_, found := slices.BinarySearch(names, b.Name)
		return !found || b.Nondeterministic
	})
	c.Builtins = append(c.Builtins, itemsBuiltin)
	c.Features = slices.DeleteFunc(c.Features, func(f string) bool { return strings.HasPrefix(f, "rego_v2") })
	c.AllowNet = []string{}
	return c
})
