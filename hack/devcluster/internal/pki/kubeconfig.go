package pki

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Kubeconfig writes a kubeconfig that holds the certificate dir/user.crt and
// its key, so that it works wherever it is copied.
func Kubeconfig(path, dir, user, server, cluster string) error {
	encoded := map[string]string{}
	for _, file := range []string{"ca.crt", user + ".crt", user + ".key"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		encoded[file] = base64.StdEncoding.EncodeToString(data)
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: %[1]s
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
users:
- name: %[4]s
  user:
    client-certificate-data: %[5]s
    client-key-data: %[6]s
contexts:
- name: %[1]s
  context:
    cluster: %[1]s
    user: %[4]s
current-context: %[1]s
`, cluster, server, encoded["ca.crt"], user, encoded[user+".crt"], encoded[user+".key"])
	return renameio.WriteFile(path, []byte(text), 0o600)
}
