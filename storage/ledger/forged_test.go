package ledger_test

import (
	"testing"

	"writ/storage/ledger"
	"writ/storage/storagetest/forged"
)

func TestProve_Forged(t *testing.T) {
	forged.Run(t, forged.Backend{Load: func(_ *testing.T, h *forged.History) ledger.History { return h }})
}
