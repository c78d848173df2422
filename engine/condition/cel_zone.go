package condition

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // so that zones are known where the system has no database of them

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// timeParts has the functions that return a part of a time. Each takes a zone, too.
var timeParts = map[string]bool{
	overloads.TimeGetFullYear: true, overloads.TimeGetMonth: true, overloads.TimeGetDate: true,
	overloads.TimeGetDayOfMonth: true, overloads.TimeGetDayOfYear: true, overloads.TimeGetDayOfWeek: true,
	overloads.TimeGetHours: true, overloads.TimeGetMinutes: true, overloads.TimeGetSeconds: true,
	overloads.TimeGetMilliseconds: true,
}

// zoneOf returns the zone that e names, if e takes a part of a time in a zone.
func zoneOf(e ast.Expr) (function string, zone ast.Expr, ok bool) {
	name, args := operandsOf(e)
	if !timeParts[name] || len(args) != 2 {
		return "", nil, false
	}
	return name, args[1], true
}

// LoadZone returns a time zone: a name such as Europe/Berlin, or a difference from UTC such as
// +05:30.
func LoadZone(name string) (*time.Location, error) {
	if at, err := time.Parse("-07:00", name); err == nil {
		_, seconds := at.Zone() // the location itself may be that of the machine, with its summer time
		return time.FixedZone(name, seconds), nil
	}
	if at, err := NamedZone(name); err == nil {
		return at, nil
	}
	return nil, fmt.Errorf("unknown time zone %q: want a name such as Europe/Berlin, UTC, "+
		"or a difference such as +05:30", name)
}

// NamedZone returns a time zone of the IANA's database, such as Europe/Berlin. It refuses Local,
// localtime and posixrules, which mean something else on each machine. The names of the database
// begin with a capital letter, the names that a machine adds do not.
func NamedZone(name string) (*time.Location, error) {
	if name != "" && name[0] >= 'A' && name[0] <= 'Z' &&
		!slices.ContainsFunc(zonesOfMachine[:], func(of string) bool { return strings.EqualFold(name, of) }) {
		if at, err := time.LoadLocation(name); err == nil {
			return at, nil
		}
	}
	return nil, fmt.Errorf("unknown time zone %q: want a name such as Europe/Berlin, or UTC", name)
}

// zonesOfMachine are names of zones that depend on the machine. Some file systems find them in
// capital letters, too.
var zonesOfMachine = [...]string{"local", "localtime", "posixrules"}

// checkZones refuses zones that are not constant, because the caller could then choose the zone. It
// also refuses unknown zones.
func checkZones(expr ast.Expr) error {
	for e := range parts(expr) {
		function, zone, ok := zoneOf(e)
		if !ok {
			continue
		}
		name, constant := textLiteral(zone)
		if !constant {
			return fmt.Errorf(`%s: the time zone must be a constant, such as "Europe/Berlin"`, function)
		}
		if _, err := LoadZone(name); err != nil {
			return fmt.Errorf("%s: %w", function, err)
		}
	}
	return nil
}

// inZone returns the function of a time's part in a constant zone, or nil if CEL has to find the
// zone. CEL would read the zone's file in every evaluation.
func inZone(function string, zone ast.Expr) func(f *Frame, v ref.Val) ref.Val {
	name, ok := textLiteral(zone)
	if !ok {
		return nil
	}
	location, err := LoadZone(name)
	if err != nil {
		return nil
	}
	return func(_ *Frame, v ref.Val) ref.Val {
		at, ok := v.(types.Timestamp)
		if !ok {
			return types.MaybeNoSuchOverloadErr(v)
		}
		return types.Timestamp{Time: at.In(location)}.Receive(function, "", nil)
	}
}
