package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"writ.example/writ/api/operator"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// fieldErrors gathers all mistakes of a body, so that one answer names them all.
type fieldErrors struct {
	list []engine.FieldError
	// fault is an error for which the caller is not responsible.
	fault error
}

func (f *fieldErrors) add(field, message string) {
	f.list = append(f.list, engine.FieldError{Field: field, Message: message})
}

// name checks a required text that is shown on one line.
func (f *fieldErrors) name(field, value string) {
	if value == "" {
		f.add(field, "is required")
		return
	}
	if err := operator.CheckName(value, condition.MaxLabel); err != nil {
		f.add(field, err.Error())
	} else if strings.TrimSpace(value) != value {
		f.add(field, "must not start or end with white space")
	}
}

// optionalName checks an optional text that is shown on one line.
func (f *fieldErrors) optionalName(field, value string) {
	if value == "" {
		f.add(field, "must not be empty: leave it out where there is none")
		return
	}
	f.name(field, value)
}

func (f *fieldErrors) uuid(field, value string) {
	switch {
	case value == "":
		f.add(field, "is required")
	case len(value) != 36 || uuid.Validate(value) != nil:
		f.add(field, "must be a UUID such as 123e4567-e89b-12d3-a456-426614174000")
	}
}

func (f *fieldErrors) merge(err error) { f.mergeAt("", err) }

// mergeAt is merge with a prefix, such as "rules[2].", for the field names.
func (f *fieldErrors) mergeAt(prefix string, err error) {
	if err == nil {
		return
	}
	var fields *engine.InvalidError
	switch {
	case errors.As(err, &fields):
		for _, field := range fields.Fields {
			f.add(prefix+field.Field, field.Message)
		}
	default:
		f.fault = err
	}
}

func (f *fieldErrors) err() error {
	if f.fault != nil {
		return f.fault
	}
	if len(f.list) == 0 {
		return nil
	}
	return &engine.InvalidError{Fields: f.list}
}

// facts refuses facts in metadata unless the scopes allow asserting facts. It always refuses keys
// that a reader could mistake for facts.
func (f *fieldErrors) facts(metadata map[string]string, scopes scopeSet) {
	for key := range metadata {
		switch {
		case strings.HasPrefix(key, engine.FactPrefix):
			if !scopes.has(scopeFactsAssert) {
				f.add("intent.metadata."+key, "is a fact, which takes the scope "+scopeFactsAssert.String()+" to send")
			}
		case readsAsFact(key):
			f.add("intent.metadata",
				fmt.Sprintf("has the key %s, which reads as a fact and is none: write %s as it is or begin the key "+
					"otherwise",
					strconv.QuoteToASCII(key), engine.FactPrefix))
		}
	}
}

// readsAsFact reports whether key looks as if it began with FactPrefix. Case, look-alike characters
// and invisible characters are ignored.
func readsAsFact(key string) bool {
	key = strings.TrimSpace(key)
	if len(key) >= len(engine.FactPrefix) && !strings.ContainsFunc(key, func(r rune) bool {
		return r >= utf8.RuneSelf
	}) {
		return strings.EqualFold(key[:len(engine.FactPrefix)], engine.FactPrefix)
	}
	folded := resource.Visible(engine.FoldID(key))
	return strings.HasPrefix(strings.TrimSpace(folded), engine.FactPrefix)
}
