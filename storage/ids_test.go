package storage

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestIDAt_IsLeastOfItsTime(t *testing.T) {
	for _, at := range []time.Time{time.UnixMilli(0), time.UnixMilli(1795257530576), time.UnixMilli(1<<48 - 1)} {
		id := IDAt(at)
		if !IDTime(id).Equal(at) || !bytes.Equal(id[6:], make([]byte, 10)) {
			t.Errorf("IDAt(%v) = %s of %v, want the least id of that time", at, id, IDTime(id))
		}
	}
	if got := IDAt(time.Unix(-1, 0)); got != uuid.Nil {
		t.Errorf("IDAt(before 1970) = %s, want the least id", got)
	}
}
