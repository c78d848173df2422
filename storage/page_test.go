package storage

import (
	"errors"
	"strings"
	"testing"
)

func TestPage_Start(t *testing.T) {
	for _, position := range []string{"", "a", strings.Repeat("\xff", 100)} {
		got, err := Page{Limit: 1, After: Cursor('a', []byte(position))}.Start('a')
		if err != nil || string(got) != position || got == nil {
			t.Errorf("Start after the cursor of %q = %q, %v", position, got, err)
		}
	}
	if got, err := (Page{Limit: 1}).Start('a'); got != nil || err != nil {
		t.Errorf("Start of the first page = %q, %v; want nil", got, err)
	}
	for name, bad := range map[string]string{
		"another list": Cursor('t', []byte("a")),
		"padding":      Cursor('a', []byte("a")) + "=",
		"alphabet":     "+/+/",
		"trailing bit": "YWB",
		"line end":     Cursor('a', []byte("a")) + "\n",
	} {
		if got, err := (Page{Limit: 1, After: bad}).Start('a'); !errors.Is(err, ErrBadCursor) {
			t.Errorf("Start after a cursor with %s = %q, %v; want ErrBadCursor", name, got, err)
		}
	}
	for _, limit := range []int{0, -1} {
		if _, err := (Page{Limit: limit}).Start('a'); err == nil {
			t.Errorf("Start of a page of %d items = nil, want an error", limit)
		}
	}
}
