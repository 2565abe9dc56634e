package authelia

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/argon2"
)

func TestUsersFileKeepsWhatIsThere(t *testing.T) {
	own := "# ours\nusers:\n  jane:\n    displayname: 'Jane'\n    password: '$argon2id$x'\n    groups: [staff]\n    extra: {number: 12345678901}\nother: &a {x: 1}\n"
	out, err := usersFile([]byte(own), LatencyUser, user{DisplayName: "Test", Password: "$argon2id$y", Groups: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Users map[string]map[string]any `yaml:"users"`
		Other map[string]any            `yaml:"other"`
	}
	if err := yaml.Unmarshal(out, &read); err != nil {
		t.Fatal(err)
	}
	if read.Users["jane"]["password"] != "$argon2id$x" || read.Users["jane"]["extra"].(map[string]any)["number"] != 12345678901 || read.Other["x"] != 1 {
		t.Errorf("something of the user's file is lost:\n%s", out)
	}
	if read.Users[LatencyUser]["password"] != "$argon2id$y" {
		t.Errorf("no latency user:\n%s", out)
	}
}

func TestUsersFileThatCannotBeUsed(t *testing.T) {
	for own, says := range map[string]string{
		"": "no mapping", "- a": "no mapping", "users: []": "no mapping under", "users:": "no mapping under", "users: {authstack-latency: {}}": "rename",
		"a: [": "not YAML",
	} {
		if _, err := usersFile([]byte(own), LatencyUser, user{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", own, err, says)
		}
	}
	out, err := usersFile([]byte("users: {}"), LatencyUser, user{})
	if err != nil || !strings.Contains(string(out), LatencyUser) {
		t.Errorf("an empty flow mapping: %v\n%s", err, out)
	}
}

func TestDigestIsInAutheliasNotation(t *testing.T) {
	salt := bytes.Repeat([]byte{7}, 16)
	got := digest([]byte("password"), salt)
	parts := strings.Split(got, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != "v=19" || parts[3] != "m=65536,t=3,p=4" {
		t.Fatalf("%s", got)
	}
	key, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || !bytes.Equal(key, argon2.IDKey([]byte("password"), salt, 3, 65536, 4, 32)) {
		t.Errorf("the key does not verify: %v", err)
	}
}

func TestGoIsToldItsCPUsBefore4_39_16(t *testing.T) {
	for version, want := range map[string]bool{"4.38.19": true, "4.39.0": true, "4.39.15": true, "4.39.16": false, "4.39.20": false} {
		if got := needsGOMAXPROCS(version); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}
