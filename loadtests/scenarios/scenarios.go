// Package scenarios holds the k6 scripts, so that the operator can put them into a ConfigMap. They
// also run by hand with any k6 from version 1.0 on; README.md says how.
package scenarios

import (
	"embed"
	"io/fs"
)

//go:embed *.js lib/*.js
var files embed.FS

// Main is the script that runs a whole plan.
const Main = "main.js"

// Own is the script that runs a user's own, which lies beside it under the name User.
const (
	Own  = "script.js"
	User = "user.js"
)

// Scripts returns the text of each script by its path, for example lib/browser.js.
func Scripts() map[string]string {
	scripts := map[string]string{}
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		scripts[path] = string(text)
		return err
	})
	if err != nil {
		// The files are part of the binary; reading them cannot fail.
		panic(err)
	}
	return scripts
}
