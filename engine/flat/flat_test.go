package flat

import (
	"encoding/binary"
	"testing"
)

func TestRead(t *testing.T) {
	b := binary.LittleEndian.AppendUint32([]byte{0xFF}, 0x01020384)
	b = binary.LittleEndian.AppendUint64(b, 0x8102030405060788)
	if got := Uint32(string(b), 1); got != 0x01020384 {
		t.Errorf("Uint32 = %#x, want 0x01020384", got)
	}
	if got := Int(string(b), 1); got != 0x01020384 {
		t.Errorf("Int = %#x, want 0x01020384", got)
	}
	if got := Uint64(string(b), 5); got != 0x8102030405060788 {
		t.Errorf("Uint64 = %#x, want 0x8102030405060788", got)
	}
}

// What is read beyond the end is never taken for a number.
func TestRead_BeyondTheEndPanics(t *testing.T) {
	for name, read := range map[string]func() uint64{
		"Uint32": func() uint64 { return uint64(Uint32("abc", 0)) },
		"Uint64": func() uint64 { return Uint64("abcdefgh", 1) },
		"before": func() uint64 { return uint64(Uint32("abcdefgh", -1)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", name)
				}
			}()
			t.Logf("%s = %d", name, read())
		}()
	}
}
