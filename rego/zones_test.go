package rego

import (
	"errors"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// TestDecision_DecidedAt_ZonesAreConstant: "no access to network, clock or environment". The zone of a
// time is neither the machine's nor the caller's. New conditions are refused with the name of the
// function. Conditions that are stored keep running, but no zone of theirs is the machine's.
func TestDecision_DecidedAt_ZonesAreConstant(t *testing.T) {
	const ns = `time.parse_rfc3339_ns(input.decided_at)`
	const constantZone, unknownZone, errorsWhenAsked = "must be a constant", "unknown time zone", "accepted, an error when asked"
	for source, want := range map[string]string{
		`time.clock([` + ns + `, "Europe/Berlin"])[0] >= 0`:                                                 "",
		`time.clock(` + ns + `)[0] >= 0`:                                                                    "",
		`time.weekday([` + ns + `, "UTC"]) != ""`:                                                           "",
		`zone := "Asia/Kolkata"; time.clock([` + ns + `, zone])[0] >= 0`:                                    "",
		`at := [` + ns + `, "Asia/Kolkata"]; time.date(at)[0] >= 2000`:                                      "",
		`time.format([` + ns + `, "America/New_York", "15:04"]) != ""`:                                      "",
		`time.diff([` + ns + `, "UTC"], ` + ns + `)[0] == 0`:                                                "",
		"package a\n\nzone := \"Europe/Berlin\"\n\nmatch if time.clock([" + ns + ", zone])[0] >= 0":         "",
		"package a\n\nhour(at) := time.clock(at)[0]\n\nmatch if hour([" + ns + ", \"Europe/Berlin\"]) >= 0": "",

		`time.clock([` + ns + `, "Local"])[0] >= 0`:                                   "time.clock: " + unknownZone,
		`time.date([` + ns + `, "Local"])[0] >= 0`:                                    "time.date: " + unknownZone,
		`time.weekday([` + ns + `, "local"]) != ""`:                                   "time.weekday: " + unknownZone,
		`time.weekday([` + ns + `, "localtime"]) != ""`:                               "time.weekday: " + unknownZone,
		`time.weekday([` + ns + `, "posixrules"]) != ""`:                              "time.weekday: " + unknownZone,
		`time.weekday([` + ns + `, "posix/Europe/Berlin"]) != ""`:                     "time.weekday: " + unknownZone,
		`time.weekday([` + ns + `, ""]) != ""`:                                        "time.weekday: " + unknownZone,
		`time.weekday([` + ns + `, "+05:30"]) != ""`:                                  "want a name such as Europe/Berlin, or UTC",
		`time.weekday([` + ns + `, "Europe/Berlim"]) != ""`:                           "time.weekday: " + unknownZone,
		`time.format([` + ns + `, "Local", "15"]) != ""`:                              "time.format: " + unknownZone,
		`time.diff(` + ns + `, [` + ns + `, "Local"])[0] == 0`:                        "time.diff: " + unknownZone,
		`at := [` + ns + `, "Local"]; time.clock(at)[0] >= 0`:                         "time.clock: " + unknownZone,
		`zone := "Local"; time.clock([` + ns + `, zone])[0] >= 0`:                     "time.clock: " + unknownZone,
		`time.clock([` + ns + `, input.intent.metadata.zone])[0] >= 0`:                "time.clock: the time zone " + constantZone,
		`at := [` + ns + `, input.intent.metadata.zone]; time.clock(at)[0] >= 0`:      "time.clock: the time zone " + constantZone,
		`time.clock([` + ns + `, concat("", ["Lo", "cal"])])[0] >= 0`:                 "time.clock: the time zone " + constantZone,
		`x := time.clock([` + ns + `, lower(input.intent.metadata.zone)]); x[0] >= 0`: "time.clock: the time zone " + constantZone,
		"package a\n\nzone := \"UTC\" if input.intent.resource == \"a\" else := \"Local\"\n\nmatch if time.clock([" + ns + ", zone])[0] >= 0": "time.clock: the time zone " + constantZone,

		`time.parse_ns("2006-01-02 MST", input.intent.metadata.day) > 0`: "time.parse_ns: the layout",
		`time.parse_ns("RFC1123", input.intent.metadata.day) > 0`:        "time.parse_ns: the layout",
		`time.parse_ns("2006-01-02", input.intent.metadata.day) > 0`:     "",

		"package a\n\nhour(at) := time.clock(at)[0]\n\nmatch if hour([" + ns + ", \"Local\"]) >= 0":                                    errorsWhenAsked,
		"package a\n\nhour(at) := time.clock(at)[0]\n\nmatch if hour([" + ns + ", input.intent.metadata.zone]) >= 0":                   errorsWhenAsked,
		`at := array.concat([` + ns + `], [input.intent.metadata.zone]); time.weekday(at) != ""`:                                       errorsWhenAsked,
		`at := json.unmarshal(concat("", ["[0,\"", input.intent.metadata.zone, "\"]"])); time.weekday(at) != ""`:                       errorsWhenAsked,
		`some zone in {"Europe/Berlin", input.intent.metadata.zone}; at := array.concat([` + ns + `], [zone]); time.weekday(at) == ""`: errorsWhenAsked,
	} {
		t.Run(source, func(t *testing.T) {
			rule := sampleRule("1", "1", `{"rego":`+condition.Quote(source)+`}`, `{"decision":"deny"}`)
			_, err := engine.CompileRule(rule, engine.Options{CompileRego: CompileCondition})
			refused := want != "" && want != errorsWhenAsked
			if refused != (err != nil) || refused && !strings.Contains(err.Error(), want) {
				t.Fatalf("CompileRule = %v, want %q", err, want)
			}
			in := sampleInput()
			in.DecidedAt = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
			in.Intent.Metadata["zone"], in.Intent.Metadata["day"] = "America/Caracas", "2026-01-31"
			got, err := must.Get(CompileCondition(source))(t).Match(in)
			machine := strings.Contains(strings.ToLower(source), "local") || strings.Contains(source, "posix")
			switch {
			case want == "" && (!got || err != nil):
				t.Errorf("Match = %v, %v, want true", got, err)
			case (want == errorsWhenAsked || machine) && !strings.Contains(source, "else") && (err == nil || got):
				t.Errorf("Match = %v, %v, want an error", got, err)
			}
		})
	}
}

// TestZones_AbbreviationsDoNotDependOnTheMachine: a stored layout with an abbreviation reads the same
// on every machine.
func TestZones_AbbreviationsDoNotDependOnTheMachine(t *testing.T) {
	was := time.Local
	t.Cleanup(func() { time.Local = was })
	in := sampleInput()
	in.Intent.Metadata["day"] = "Sat, 31 Jan 2026 12:00:00 CET"
	source := `time.parse_ns("RFC1123", input.intent.metadata.day) == 1769860800000000000`
	for _, zone := range []string{"UTC", "Europe/Berlin", "Asia/Tokyo"} {
		time.Local = must.Get(time.LoadLocation(zone))(t)
		if got, err := must.Get(CompileCondition(source))(t).Match(in); !got || err != nil {
			t.Errorf("Match on a machine in %s = %v, %v, want true", zone, got, err)
		}
	}
	in.Intent.Metadata["day"] = "nonsense"
	if _, err := must.Get(CompileCondition(source))(t).Match(in); err == nil || errors.Is(err, errZone) || strings.Contains(err.Error(), "nonsense") {
		t.Errorf("Match of no time = %v, want an error without the value", err)
	}
}
