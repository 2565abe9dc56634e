package kube

import (
	"bytes"
	"errors"
	"slices"
	"sort"
	"strings"
)

// Redactor takes secrets out of messages. The zero value and nil take out none.
type Redactor struct {
	secrets []string
}

// shortest is the length from which a value of a Secret counts as secret; a shorter one (a user
// name, a port) would tear holes into every message.
const shortest = 8

// open are the ends of the keys whose values are no secrets, though they stand in a Secret.
var open = []string{"user", "username", "host", "name", "port", "email", "database", "url"}

// Add has every value of the data taken out line by line.
func (r *Redactor) Add(data map[string][]byte) {
	for key, value := range data {
		if slices.ContainsFunc(open, func(end string) bool { return strings.HasSuffix(strings.ToLower(key), end) }) {
			continue
		}
		for line := range bytes.Lines(value) {
			r.AddString(string(bytes.TrimSpace(line)))
		}
	}
}

// AddString has one value taken out.
func (r *Redactor) AddString(value string) {
	if len(value) >= shortest {
		r.secrets = append(r.secrets, value)
	}
}

// Text is the message without the secrets.
func (r *Redactor) Text(message string) string {
	if r == nil || len(r.secrets) == 0 || message == "" {
		return message
	}
	// The longest first, lest a part of it be all that is taken out.
	sort.Slice(r.secrets, func(i, j int) bool { return len(r.secrets[i]) > len(r.secrets[j]) })
	for _, secret := range r.secrets {
		message = strings.ReplaceAll(message, secret, "[redacted]")
	}
	return message
}

// Error is the error without the secrets; what it wraps can still be asked for.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	text := r.Text(err.Error())
	if text == err.Error() {
		return err
	}
	return &redacted{text: text, err: err}
}

type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }

// Is and As answer for the error, so that it can still be told a conflict or a refusal; what is logged
// is its redacted text.
func (e *redacted) Is(target error) bool { return errors.Is(e.err, target) }

// As finds what the error is.
func (e *redacted) As(target any) bool { return errors.As(e.err, target) }
