package authelia

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"authstack.dev/authstack/internal/stack/part"
)

// logLevels of Authelia (internal/configuration/schema/log.go of 4.39).
var logLevels = []string{"trace", "debug", "info", "warn", "error"}

// LogLevel that Authelia runs with: the operator's, or that of the last extra file which sets one. Only
// a word that is a level is told, since the file may be a Secret.
func LogLevel(in part.Input) string {
	level := "warn"
	for _, extra := range in.Stack.Spec.Authelia.ExtraConfig {
		var file struct {
			Log struct {
				Level string `yaml:"level"`
			} `yaml:"log"`
			Flat string `yaml:"log.level"`
		}
		if err := yaml.Unmarshal(extraContent(in, extra), &file); err != nil {
			continue
		}
		for _, given := range []string{file.Log.Level, file.Flat} {
			if given = strings.ToLower(given); slices.Contains(logLevels, given) {
				level = given
			}
		}
	}
	return level
}
