package receipt

// Intent has the members of an intent that the member intent_digest of a [Payload] covers, with UUIDs in
// lower case. Cost and Metadata are absent if they are nil, and SessionID if it is empty.
type Intent struct {
	ActionType string
	AgentID    string
	Cost       *Cost
	IntentID   string
	IssuedAt   string // as it was sent
	Metadata   map[string]string
	PolicyID   string
	Resource   string
	SessionID  string
}

// Cost is the cost of an intent.
type Cost struct {
	AmountMinor int64
	Currency    string
}

// AppendCanonical appends the intent's canonical JSON. The strings must be valid UTF-8, and the amount
// within AppendInt's range. It does not allocate when dst has room.
func (in Intent) AppendCanonical(dst []byte) []byte {
	dst = AppendMember(dst, `{"action_type":`, in.ActionType)
	dst = AppendMember(dst, `,"agent_id":`, in.AgentID)
	if in.Cost != nil {
		dst = in.Cost.AppendCanonical(append(dst, `,"cost":`...))
	}
	dst = AppendMember(dst, `,"intent_id":`, in.IntentID)
	dst = AppendMember(dst, `,"issued_at":`, in.IssuedAt)
	if in.Metadata != nil {
		dst = AppendMap(append(dst, `,"metadata":`...), in.Metadata)
	}
	dst = AppendMember(dst, `,"policy_id":`, in.PolicyID)
	dst = AppendMember(dst, `,"resource":`, in.Resource)
	if in.SessionID != "" {
		dst = AppendMember(dst, `,"session_id":`, in.SessionID)
	}
	return append(dst, '}')
}

// AppendCanonical appends the cost's canonical JSON.
func (c Cost) AppendCanonical(dst []byte) []byte {
	dst = AppendInt(append(dst, `{"amount_minor":`...), c.AmountMinor)
	return append(AppendMember(dst, `,"currency":`, c.Currency), '}')
}
