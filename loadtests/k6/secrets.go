// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib/fsext"
)

// secrets are the passwords of the test users. A user's own script knows them and may put them where
// they do not belong: into a tag, the name of a check, a message.
type secrets []string

const hidden = "[redacted]"

// readSecrets reads them out of credentials.json; by hand there may be none.
func readSecrets(fs fsext.Fs, path string) secrets {
	if path == "" {
		return nil
	}
	data, err := fsext.ReadFile(fs, path)
	if err != nil {
		return nil
	}
	var file struct {
		Users []struct {
			Password string `json:"password"`
		} `json:"users"`
	}
	if json.Unmarshal(data, &file) != nil {
		return nil
	}
	var list secrets
	for _, user := range file.Users {
		if user.Password == "" {
			continue
		}
		list = append(list, user.Password)
		// As it would stand in a URL.
		if escaped := url.QueryEscape(user.Password); escaped != user.Password {
			list = append(list, escaped)
		}
	}
	return list
}

func (s secrets) hide(text string) string {
	for _, secret := range s {
		if strings.Contains(text, secret) {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	return text
}

// guard keeps them out of k6's own log, from the moment that its outputs are made: before, no script
// has run further than its first evaluation, whose errors scenarios/script.js rewrites.
func (s secrets) guard(logger logrus.FieldLogger) {
	var of *logrus.Logger
	switch l := logger.(type) {
	case *logrus.Logger:
		of = l
	case *logrus.Entry:
		of = l.Logger
	}
	if of != nil && len(s) > 0 {
		of.AddHook(s)
	}
}

// Levels of the log that the hook sees: all.
func (secrets) Levels() []logrus.Level { return logrus.AllLevels }

// Fire rewrites an entry before it is written.
func (s secrets) Fire(entry *logrus.Entry) error {
	entry.Message = s.hide(entry.Message)
	for key, value := range entry.Data {
		switch v := value.(type) {
		case string:
			entry.Data[key] = s.hide(v)
		case error:
			entry.Data[key] = s.hide(v.Error())
		case fmt.Stringer:
			entry.Data[key] = s.hide(v.String())
		}
	}
	return nil
}
