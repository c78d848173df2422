package suite

import (
	"errors"
	"strings"

	"writ.example/writ/engine"
)

// inSession compiles the session of the case. The session is active and belongs to the intent's
// agent. If the case has no session, or a session with mistakes, inSession returns nil.
func (s *caseBuilder) inSession(in *engine.Intent) *engine.CompiledSession {
	if s.session.json == nil {
		return nil
	}
	if s.session.json.Kind() != '{' {
		s.refuse(s.session.from, "want an object: %s", shapes["session"])
		return nil
	}
	var narrows Session
	err := engine.Decode(s.session.json, "", &narrows)
	var compiled *engine.CompiledSession
	if err == nil {
		compiled, err = engine.CompileSession(&engine.Session{
			PolicyID: in.PolicyID, AgentID: in.AgentID, Status: engine.SessionActive,
			AllowedActionTypes: narrows.AllowedActionTypes, AllowedResourcePatterns: narrows.AllowedResourcePatterns,
			MaxCostMinor: narrows.MaxCostMinor,
		})
	}
	var invalid *engine.InvalidError
	switch {
	case errors.As(err, &invalid):
		for _, f := range invalid.Fields {
			s.refuse(strings.TrimSuffix(s.session.from+"."+f.Field, "."), "%s", f.Message)
		}
	case err != nil:
		s.add(err)
	}
	return compiled
}
