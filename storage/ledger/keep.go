package ledger

import "writ.example/writ/engine"

// Keeper says what the rows of l keep, for the messages of rules.
func (l *Ledger) Keeper() engine.Keeper { return (*keeper)(&l.cfg) }

type keeper Config

// Intent implements [engine.Keeper].
func (k *keeper) Intent(in *engine.Intent, names engine.AgentNames) *engine.Intent {
	resource, err := in.Readings()
	if err != nil {
		return nil
	}
	kept := &engine.Intent{
		IntentID:   in.IntentID,
		PolicyID:   in.PolicyID,
		AgentID:    (&Entry{Intent: in, Names: names}).Agent(k.Scrub),
		ActionType: k.Scrub.Identity(in.ActionType),
		Resource:   k.Scrub.Resource(in.Resource, resource.Projection()),
		IssuedAt:   toNanoseconds(in.IssuedAt),
	}
	if in.SessionID != "" {
		kept.SessionID = k.Scrub.Identity(in.SessionID)
	}
	return kept
}

// Text implements [engine.Keeper].
func (k *keeper) Text(s string) string { return k.Scrub.Text(s) }
