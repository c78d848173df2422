package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// refusal says why functions of OPA cannot be called, and what to write in their place.
type refusal struct{ names, why, instead string }

// Reasons that several functions have.
const (
	notPure    = "its result depends on more than its arguments"
	deprecated = "it is deprecated"
	needsKey   = "whoever reads the rule would read the key"
	anyLength  = "a short value makes a text of any length"
	uncounted  = "its steps are not counted"
	language   = "it is a language in the language"
	asFact     = "let the integration do it and send the result as metadata, under a key that begins with fact."
)

// refusals has every function of OPA that a condition cannot call. docs/rego-functions.md shows it.
func refusals() []refusal {
	return []refusal{
		{"http.send net.lookup_ip_addr", notPure + ": it asks the network", "a list, or " + asFact},
		{"opa.runtime", notPure + ": it reads the environment", "input.policy, input.agent or a list"},
		{"time.now_ns", notPure + ": it reads the clock", "time.parse_rfc3339_ns(input.decided_at)"},
		{"rand.intn", notPure + ": it draws a number",
			"crypto.sha256(input.intent.intent_id), which stays the same for an intent"},
		{"uuid.rfc4122", notPure + ": it draws a number", "input.intent.intent_id"},
		{"rego.metadata.chain rego.metadata.rule", "annotations have no effect here", "a constant"},
		{"trace", "nobody reads it", "print, or writ eval --explain"},
		{"internal.print internal.test_case", "only the compiler writes it", "print"},
		{"all", deprecated, "every x in xs { x }"},
		{"any", deprecated, "some x in xs; x"},
		{"cast_array", deprecated, "is_array(x)"},
		{"cast_boolean", deprecated, "is_boolean(x)"},
		{"cast_null", deprecated, "is_null(x)"},
		{"cast_object", deprecated, "is_object(x)"},
		{"cast_set", deprecated, "is_set(x)"},
		{"cast_string", deprecated, "is_string(x)"},
		{"net.cidr_overlap", deprecated, "net.cidr_contains"},
		{"re_match", deprecated, "regex.match"},
		{"set_diff", deprecated, "x - y"},
		{"crypto.hmac.equal crypto.hmac.md5 crypto.hmac.sha1 crypto.hmac.sha256 crypto.hmac.sha512", needsKey, asFact},
		{"crypto.parse_private_keys crypto.x509.parse_certificate_request crypto.x509.parse_certificates " +
			"crypto.x509.parse_keypair crypto.x509.parse_rsa_private_key",
			"certificates are checked where they arrive", asFact},
		{"crypto.x509.parse_and_verify_certificates crypto.x509.parse_and_verify_certificates_with_options",
			notPure + ": it reads the clock", asFact},
		{"io.jwt.decode io.jwt.verify_eddsa io.jwt.verify_es256 io.jwt.verify_es384 io.jwt.verify_es512 " +
			"io.jwt.verify_hs256 io.jwt.verify_hs384 io.jwt.verify_hs512 io.jwt.verify_ps256 io.jwt.verify_ps384 " +
			"io.jwt.verify_ps512 io.jwt.verify_rs256 io.jwt.verify_rs384 io.jwt.verify_rs512",
			"tokens are checked where they arrive, and are not metadata", asFact},
		{"io.jwt.decode_verify", notPure + ": it reads the clock", asFact},
		{"io.jwt.encode_sign io.jwt.encode_sign_raw providers.aws.sign_req", needsKey, asFact},
		{"bits.lsh", "1 shifted by 1000000000 has 300 million digits", "a multiplication by a constant"},
		{"units.parse units.parse_bytes", "1e999999 has a million digits",
			"to_number, of a number that is sent without a unit"},
		{"json.marshal_with_options", anyLength + ": its indentation", "json.marshal"},
		{"urlquery.encode_object", uncounted, "concat of urlquery.encode"},
		{"urlquery.decode_object", uncounted, "split, and urlquery.decode of the parts"},
		{"yaml.marshal", anyLength + ": its indentation", "json.marshal"},
		{"yaml.is_valid yaml.unmarshal", anyLength + ": its aliases", "json.is_valid and json.unmarshal"},
		{"net.cidr_expand", anyLength + ": a network has any number of addresses",
			"net.cidr_contains"},
		{"net.cidr_merge", uncounted, "net.cidr_contains_matches with the networks as they are"},
		{"indexof_n", uncounted, "indexof, strings.count or regex.find_n"},
		{"graph.reachable graph.reachable_paths", uncounted, "a rule for each step"},
		{"json.patch", uncounted, "object.union and json.remove"},
		{"json.match_schema json.verify_schema", notPure + ": a schema can name an address",
			"is_string and the like, and a comparison for each member"},
		{"regex.globs_match", uncounted, "glob.match of each text"},
		{"regex.template_match", "the expression cannot be checked before it runs", "regex.match"},
		{"graphql.is_valid graphql.parse graphql.parse_and_verify graphql.parse_query graphql.parse_schema " +
			"graphql.schema_is_valid", language, asFact},
		{"rego.parse_module", language, "a function of the module"},
		{"strings.render_template", language + ", with loops", `sprintf, or a template string such as $"{input.agent.id}"`},
	}
}

// cannotCall returns why a function of OPA cannot be called here, and what to write in its place.
func cannotCall(b *ast.Builtin) string {
	for _, r := range refusals() {
		if slices.Contains(strings.Fields(r.names), b.Name) {
			return r.why + ": write " + r.instead
		}
	}
	return "writ has not reviewed it"
}
