//go:build contract

package durability

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// django says of each case of django/commits.py whether its commit has to wait.
var django = map[string]bool{
	"a new session":                                    false,
	"a session that a flow changes":                    false,
	"who is logged in":                                 false,
	"a throttle counter":                               false,
	"a throttle counter again":                         false,
	"a policy result":                                  false,
	"an application list that is touched":              false,
	"a flow plan":                                      false,
	"a session and a policy result in one transaction": false,
	"a seen SAML response":                             true,
	"a cache entry that is deleted":                    true,
	"a new key for a session in a flow":                false,
	"a new key for somebody who is logged in":          true,
	"the end of a session in a flow":                   false,
	"the end of a session in which nobody is":          true,
	"a logout of somebody who is logged in":            true,
	"an earlier end of a session":                      true,
	"the end of an impersonation":                      true,
	"a user's last login":                              false,
	"a session and a last login in one transaction":    false,
	"a user's address":                                 true,
	"a session and a user in one transaction":          true,
	"a user and a session in one transaction":          true,
	"a task":              true,
	"how far a task is":   false,
	"a note of a task":    false,
	"a task that is done": false,
	"a task that is put into the queue again": true,
}

// TestWhichCommitsOfDjangoWait: what authentik is built on decides in which message and protocol a commit comes, and
// whose key a cache entry has. Its own code cannot be had here; Django, django-tenants, psqlextra and psycopg can.
func TestWhichCommitsOfDjangoWait(t *testing.T) {
	packages := t.TempDir()
	install := exec.Command("python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-compile", "--target", packages, "--requirement", "django/requirements.txt")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v (on Debian, apt-get install python3-pip)\n%s", err, out)
	}
	c, monitor := prepare(t)
	execute(t, monitor, "GRANT ALL ON ALL TABLES IN SCHEMA public TO authentik")
	for _, binding := range []string{"client", "server"} {
		t.Run("parameters bound by the "+binding, func(t *testing.T) {
			product := exec.CommandContext(t.Context(), "python3", "django/commits.py", fmt.Sprint(c.port), binding)
			product.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
			var failure strings.Builder
			product.Stderr = &failure
			in, err := product.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := product.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := product.Start(); err != nil {
				t.Fatal(err)
			}
			answers := bufio.NewScanner(out)
			tell := func(what, want string) error {
				if _, err := io.WriteString(in, what+"\n"); err != nil {
					return fmt.Errorf("%w\n%s", err, failure.String())
				}
				if want != "" && (!answers.Scan() || answers.Text() != want) {
					_ = product.Wait()
					return fmt.Errorf("%q instead of %q\n%s", answers.Text(), want, failure.String())
				}
				return nil
			}
			for sentence, waits := range django {
				if err := tell(sentence, "ready"); err != nil {
					t.Fatalf("%s: %v", sentence, err)
				}
				if got := waited(t, monitor, func() error { return tell("", "done") }); got != waits {
					t.Errorf("%s: waited for the WAL: %v, want %v", sentence, got, waits)
				}
				if err := tell("", ""); err != nil {
					t.Fatalf("%s: %v", sentence, err)
				}
			}
			_ = in.Close()
			if err := product.Wait(); err != nil {
				t.Errorf("%v\n%s", err, failure.String())
			}
		})
	}
}
