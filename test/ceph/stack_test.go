//go:build ceph

package ceph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/test/cluster"
	"authstack.dev/authstack/test/durability/load"
)

// stack is one AuthStack on Ceph with the load that its database is under.
type stack struct {
	t          *testing.T
	name       string
	durability v1alpha1.Durability
	// zalando is whether Zalando's operator makes the database.
	zalando bool
	// dsn opens the database as the product's role; server is where the product answers.
	dsn, server        string
	username, password string
	pod                *corev1.Pod
	people             []int
	ledger             *load.Ledger
	crowd              *load.Crowd
	// killed is when the last crash began.
	killed time.Time
	// forgotten are the commits of earlier ledgers; see check.
	forgotten int
	// broken and worst are what crashes have taken so far.
	broken load.Broken
	worst  time.Duration
}

// begin a test with the stack, with nothing acknowledged yet.
func (s *stack) begin(t *testing.T) {
	t.Helper()
	s.t, s.people, s.ledger, s.broken, s.worst, s.forgotten = t, nil, load.NewLedger(), load.Broken{}, 0, 0
	kube.WaitReady(t, namespace, s.name)
	s.look()
}

// look up how to reach the stack.
func (s *stack) look() {
	s.t.Helper()
	ctx := context.Background()
	found, err := kube.Stack(ctx, namespace, s.name)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := found.Status.Database.Durability; got != s.durability {
		s.t.Fatalf("%s: durability %s is in force: %s", s.name, got, found.Status.Database.DurabilityNote)
	}
	secret := func(name string) map[string][]byte {
		var secret corev1.Secret
		if err := kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret); err != nil {
			s.t.Fatal(err)
		}
		return secret.Data
	}
	address := func(name string) string {
		var service corev1.Service
		if err := kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &service); err != nil {
			s.t.Fatal(err)
		}
		return service.Spec.ClusterIP
	}
	database, admin := secret(found.Status.Database.SecretName), secret(found.Status.IdentityProvider.AdminSecretName)
	workload, _, _ := strings.Cut(found.Status.Database.Host, ".")
	s.dsn = fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=prefer connect_timeout=10",
		address(workload), found.Status.Database.Port, database["username"], database["password"], found.Status.Database.Name)
	s.server = "http://" + address(found.Status.IdentityProvider.ServiceName)
	s.username, s.password = string(admin["username"]), string(admin["password"])
	s.findPod()
}

func (s *stack) findPod() {
	s.t.Helper()
	var err error
	labels := client.MatchingLabels{v1alpha1.StackLabel: s.name, "app.kubernetes.io/component": "database"}
	if s.zalando {
		labels = client.MatchingLabels{"cluster-name": s.name + "-postgres", "spilo-role": "master"}
	}
	s.pod, err = podOf(context.Background(), namespace, labels)
	if err != nil {
		s.t.Fatal(err)
	}
}

// connect to the database as soon as it answers.
func (s *stack) connect() *pgx.Conn {
	s.t.Helper()
	var conn *pgx.Conn
	cluster.Eventually(s.t, "the database of "+s.name+" answers", 3*time.Minute, func(ctx context.Context) (err error) {
		conn, err = pgx.Connect(ctx, s.dsn)
		return err
	})
	return conn
}

// start the load: people who log in and out, change their passwords, make accounts and tokens and revoke them.
func (s *stack) start(run int) {
	s.t.Helper()
	ctx := context.Background()
	if s.people == nil {
		conn := s.connect()
		defer func() { _ = conn.Close(ctx) }()
		var err error
		if s.people, err = load.MakePeople(ctx, conn, people); err != nil {
			s.t.Fatal(err)
		}
	}
	var conns []*pgx.Conn
	for range s.people {
		conns = append(conns, s.connect())
	}
	s.crowd = load.Start(ctx, s.ledger, run, s.people, conns)
}

// everyKind waits until a commit of every kind was acknowledged under the load, however slow the machine is.
func (s *stack) everyKind(t *testing.T) {
	t.Helper()
	cluster.Eventually(t, s.name+": a commit of every kind", 2*time.Minute, func(context.Context) error {
		if commits, all := s.ledger.Acknowledged(); !all {
			return fmt.Errorf("%d commits, and not of every kind", commits)
		}
		return nil
	})
}

// check what is in force against what was acknowledged.
func (s *stack) check() {
	s.t.Helper()
	ctx := context.Background()
	conn := s.connect()
	defer func() { _ = conn.Close(ctx) }()
	found, err := s.ledger.Check(ctx, conn)
	if err != nil {
		s.t.Fatal(err)
	}
	if !found.Oldest.IsZero() {
		s.worst = max(s.worst, s.killed.Sub(found.Oldest))
	}
	s.broken.Add(found)
	s.ledger.Counted()
	if s.durability == v1alpha1.DurabilityRelaxed {
		// What is missing has been counted, and would be again.
		commits, _ := s.ledger.Acknowledged()
		s.forgotten += commits
		s.ledger = load.NewLedger()
	}
}

// String is what the crashes so far have taken.
func (s *stack) String() string {
	commits, _ := s.ledger.Acknowledged()
	b := s.broken
	return fmt.Sprintf("%s: of %d acknowledged commits %d accounts, %d passwords, %d tokens, %d revocations, %d logouts, %d tasks and %d sessions are missing, the oldest of %s before its crash",
		s.durability, s.forgotten+commits, b.Accounts, b.Passwords, b.Tokens, b.Revocations, b.Logouts, b.Tasks, b.Sessions, s.worst.Round(time.Millisecond))
}

// killDatabase ends every process of PostgreSQL with SIGKILL.
func (s *stack) killDatabase() {
	s.t.Helper()
	if killIn(s.t, s.pod, "postgres") == 0 {
		s.t.Fatalf("no process of PostgreSQL in Pod %s", s.pod.Name)
	}
}

// cutVolume ends with SIGKILL the process that attaches the volume's image, so that what is only in the memory of the node
// never reaches Ceph: with the machine gone it would not either.
func (s *stack) cutVolume() {
	s.t.Helper()
	var claim corev1.PersistentVolumeClaim
	key := client.ObjectKey{Namespace: namespace, Name: s.pod.Spec.Volumes[0].Name}
	for _, volume := range s.pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			key.Name = volume.PersistentVolumeClaim.ClaimName
		}
	}
	if err := kube.Get(context.Background(), key, &claim); err != nil {
		s.t.Fatal(err)
	}
	pids := processes(s.t, func(command, _ string) bool {
		return strings.Contains(command, "qemu-storage-daemon") && strings.Contains(command, claim.Spec.VolumeName)
	})
	if len(pids) == 0 {
		s.t.Fatalf("no process attaches %s", claim.Spec.VolumeName)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// deletePods has the Pods of the stack made anew: after the third crash within minutes the kubelet's back-off would hold them up.
func (s *stack) deletePods() {
	s.t.Helper()
	cluster.Kubectl(s.t, "delete", "pods", "-l", v1alpha1.StackLabel+"="+s.name, "-n", namespace, "--grace-period=1", "--wait=false")
}

// newPod waits for the one that follows.
func (s *stack) newPod() {
	s.t.Helper()
	old := s.pod.UID
	cluster.Eventually(s.t, "the database's Pod of "+s.name+" is back", 4*time.Minute, func(ctx context.Context) error {
		pod, err := podOf(ctx, namespace, client.MatchingLabels{v1alpha1.StackLabel: s.name, "app.kubernetes.io/component": "database"})
		if err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.UID != old {
				s.pod = pod
				return nil
			}
		}
		return fmt.Errorf("Pod %s is not Ready", pod.Name)
	})
}

// login over HTTP as the first administrator, through the flow's requests.
func (s *stack) login(ctx context.Context) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	// The cookies are Secure; the proxy that ends TLS is left out.
	browser := &http.Client{Timeout: 15 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	https := &url.URL{Scheme: "https", Host: "sso.example.com"}
	const executor = "/api/v3/flows/executor/default-authentication-flow/?query="
	var answer map[string]string
	for range 20 {
		var body io.Reader
		method := http.MethodGet
		if len(answer) > 0 {
			data, err := json.Marshal(answer)
			if err != nil {
				return err
			}
			body, method = bytes.NewReader(data), http.MethodPost
		}
		request, err := http.NewRequestWithContext(ctx, method, s.server+executor, body)
		if err != nil {
			return err
		}
		request.Host = https.Host
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Forwarded-Proto", "https")
		for _, cookie := range jar.Cookies(https) {
			request.AddCookie(cookie)
			if cookie.Name == "authentik_csrf" {
				request.Header.Set("X-authentik-CSRF", cookie.Value)
			}
		}
		request.Header.Set("Referer", "https://"+https.Host+"/")
		response, err := browser.Do(request)
		if err != nil {
			return err
		}
		var challenge struct {
			Component string `json:"component"`
		}
		err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&challenge)
		_ = response.Body.Close()
		jar.SetCookies(https, response.Cookies())
		answer = nil
		switch {
		case response.StatusCode == http.StatusFound:
		case response.StatusCode != http.StatusOK:
			return fmt.Errorf("status %d", response.StatusCode)
		case err != nil:
			return err
		case challenge.Component == "ak-stage-identification":
			answer = map[string]string{"component": challenge.Component, "uid_field": s.username}
		case challenge.Component == "ak-stage-password":
			answer = map[string]string{"component": challenge.Component, "password": s.password}
		case challenge.Component == "xak-flow-redirect":
			return nil
		default:
			return fmt.Errorf("an unexpected stage %q", challenge.Component)
		}
	}
	return errors.New("the flow goes round in circles")
}

// logsIn waits until a person can log in.
func (s *stack) logsIn() {
	s.t.Helper()
	cluster.Eventually(s.t, "a login to "+s.name, 2*time.Minute, s.login)
}

func (s *stack) condition(ctx context.Context, kind string) (metav1.Condition, error) {
	found, err := kube.Stack(ctx, namespace, s.name)
	if err != nil {
		return metav1.Condition{}, err
	}
	if c := meta.FindStatusCondition(found.Status.Conditions, kind); c != nil {
		return *c, nil
	}
	return metav1.Condition{}, nil
}

// annotate asks the operator for something anew.
func (s *stack) annotate(annotation string) {
	s.t.Helper()
	cluster.Kubectl(s.t, "annotate", "authstack", s.name, "-n", namespace, "--overwrite", fmt.Sprintf("%s=%d", annotation, time.Now().UnixNano()))
}
