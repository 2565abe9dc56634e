package authelia

import (
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
)

func TestLogLevel(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"nothing is said":                     {want: "warn"},
		"a file sets it":                      {files: []string{"log: {level: info}"}, want: "info"},
		"the last file counts":                {files: []string{"log: {level: info}", "log: {level: Debug}"}, want: "debug"},
		"a flat key is the same":              {files: []string{"log.level: trace"}, want: "trace"},
		"a word that is no level is not told": {files: []string{"log: {level: hunter2}"}, want: "warn"},
		"a broken file sets nothing":          {files: []string{"log: [", "theme: dark"}, want: "warn"},
	} {
		t.Run(name, func(t *testing.T) {
			in := part.Input{Stack: &v1alpha1.AuthStack{Spec: v1alpha1.AuthStackSpec{Authelia: &v1alpha1.AutheliaSpec{}}}, Facts: facts.Stack{ConfigMaps: map[string]map[string]string{}}}
			for i, text := range c.files {
				name := string(rune('a' + i))
				in.Facts.ConfigMaps[name] = map[string]string{configKey: text}
				in.Stack.Spec.Authelia.ExtraConfig = append(in.Stack.Spec.Authelia.ExtraConfig, v1alpha1.AutheliaExtraConfig{Name: name})
			}
			if got := LogLevel(in); got != c.want {
				t.Errorf("the level is %s, want %s", got, c.want)
			}
		})
	}
}
