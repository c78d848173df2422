package condition

import (
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"

	"writ.example/writ/engine/condition/conditiontest"
	"writ.example/writ/engine/resource"
)

// TestDecision_DecidedAt: "decided_at is the row's own time … a timestamp in CEL, RFC 3339 text in
// trees …, no member of the intent".
func TestDecision_DecidedAt(t *testing.T) {
	at := time.Date(2026, 1, 31, 23, 30, 0, 125_000_000, time.UTC) // a Saturday in UTC, a Sunday in Berlin
	for doc, want := range map[string]bool{
		`{"decided_at":"2026-02-01T00:30:00.125+01:00"}`:                                       true,
		`{"decided_at":{"$gt":"2026-01-31T23:30:00.125Z"}}`:                                    false,
		`{"field":"decided_at","op":"lt","value":"2026-02-01T00:00:00Z"}`:                      true,
		`{"cel":"decided_at == timestamp('2026-01-31T23:30:00.125Z')"}`:                        true,
		`{"cel":"decided_at - intent.issued_at < duration('12h')"}`:                            true,
		`{"cel":"decided_at.getDayOfWeek() == 6 && decided_at.getHours() == 23"}`:              true,
		`{"cel":"decided_at.getDayOfWeek('Europe/Berlin') == 0"}`:                              true,
		`{"cel":"decided_at.getHours('Europe/Berlin') == 0"}`:                                  true,
		`{"cel":"decided_at.getHours('+05:30') == 5 && decided_at.getMinutes('+05:30') == 0"}`: true,
		`{"cel":"decided_at.getDate('-11:00') == 31"}`:                                         true,
		`{"cel":"(decided_at + duration('1h')).getMonth('Europe/Berlin') == 1"}`:               true,
		`{"cel":"has(decided_at)"}`:                                                            true,
	} {
		f := testFrame(t, intentWith(nil))
		f.SetDecidedAt(at)
		got, err := mustCondition(t, doc).Program.Eval(f)
		if got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", doc, got, err, want)
		}
	}
	for _, doc := range []string{
		`{"decided_at":{"$gt":"2026-01-31"}}`, `{"intent.decided_at":"2026-01-31T12:00:00Z"}`,
		`{"cel":"intent.decided_at > timestamp('2026-01-31T12:00:00Z')"}`, `{"cel":"['a'].exists(decided_at, decided_at == 'a')"}`,
	} {
		if _, err := Compile(doc, Options{Side: resource.ForBlock}); err == nil {
			t.Errorf("%s compiles", doc)
		}
	}
}

// TestDecision_DecidedAt_ErrorsTighten: an evaluation without a time has no value for a condition
// that reads the time.
func TestDecision_DecidedAt_ErrorsTighten(t *testing.T) {
	for _, doc := range []string{
		`{"decided_at":{"$gt":"2026-01-31T12:00:00Z"}}`, `{"cel":"decided_at > timestamp('2026-01-31T12:00:00Z')"}`,
		`{"cel":"decided_at.getHours('Europe/Berlin') < 25"}`, `{"cel":"string(decided_at) != 'x'"}`,
	} {
		f := testFrame(t, intentWith(nil))
		f.SetDecidedAt(time.Time{})
		if got, err := mustCondition(t, doc).Program.Eval(f); got || err == nil {
			t.Errorf("%s without a time = %v, %v, want an error", doc, got, err)
		}
	}
}

// TestZones_AreConstantAndKnown checks that nobody can accept a condition whose zone is the
// caller's, the machine's or no zone at all. Conditions that are stored keep running.
func TestZones_AreConstantAndKnown(t *testing.T) {
	for zone, want := range map[string]string{
		`'Europe/Berlin'`: "", `'UTC'`: "", `'-03:30'`: "", `'+14:00'`: "",
		`'Local'`: "unknown time zone", `'local'`: "unknown time zone", `'localtime'`: "unknown time zone", `'LOCALTIME'`: "unknown time zone",
		`'posixrules'`: "unknown time zone", `'posix/Europe/Berlin'`: "unknown time zone", `'right/UTC'`: "unknown time zone", `''`: "unknown time zone", `'Europe/Berlim'`: "unknown time zone",
		`'../etc/passwd'`: "unknown time zone", `'5:30'`: "unknown time zone", `'+99:00'`: "unknown time zone",
		`intent.metadata.zone`: "must be a constant",
	} {
		source := "decided_at.getHours(" + zone + ") >= 9"
		_, err := Compile(`{"cel":`+Quote(source)+`}`, Options{Side: resource.ForBlock})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
		if _, err := Compile(`{"cel":`+Quote(source)+`}`, Options{Side: resource.ForBlock, Stored: true}); err != nil {
			t.Errorf("%s, stored: %v", source, err)
		}
	}
}

// TestZones_AgreeWithCEL checks every part of a time in a zone against cel-go itself.
func TestZones_AgreeWithCEL(t *testing.T) {
	g := conditiontest.New(5)
	env, err := cel.NewEnv(cel.Variable("decided_at", cel.TimestampType))
	if err != nil {
		t.Fatal(err)
	}
	for function := range timeParts {
		for _, zone := range []string{"Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "Pacific/Kiritimati", "UTC", "+05:45", "-09:30"} {
			source := "decided_at." + function + "('" + zone + "')"
			theirs, issues := env.Compile(source)
			if issues.Err() != nil {
				t.Fatal(issues.Err())
			}
			asked, err := env.Program(theirs)
			if err != nil {
				t.Fatal(err)
			}
			for range 50 {
				at := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(g.Int64N(50*365*24*3600_000)) * time.Millisecond)
				want, _, err := asked.Eval(map[string]any{"decided_at": at})
				if err != nil {
					t.Fatal(err)
				}
				ours := mustCondition(t, `{"cel":`+Quote(source+" == "+want.ConvertToType(cel.StringType).Value().(string))+`}`)
				f := testFrame(t, intentWith(nil))
				f.SetDecidedAt(at)
				if ok, err := ours.Program.Eval(f); !ok || err != nil {
					t.Fatalf("%s of %v: CEL says %v, and we say %v, %v", source, at, want, ok, err)
				}
			}
		}
	}
}
