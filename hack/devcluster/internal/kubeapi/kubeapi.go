// Package kubeapi asks the API server the few things devcluster wants to know.
// It is not client-go, so that the command stays small and quick to build.
package kubeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"authstack.dev/authstack/hack/devcluster/internal/layout"
)

// Client talks to one API server as its administrator.
type Client struct {
	server string
	http   *http.Client
}

// New reads the administrator's certificate from the state folder.
func New(l layout.Layout, server string) (*Client, error) {
	certificate, err := tls.LoadX509KeyPair(l.InState("pki", "admin.crt"), l.InState("pki", "admin.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(l.InState("pki", "ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &Client{server: server, http: &http.Client{
		Timeout: 5 * time.Second,
		// No proxy: the address is on this machine.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}},
	}}, nil
}

// ErrNotFound says that the object does not exist.
var ErrNotFound = errors.New("not found")

// Get fetches a path; into may be nil.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	switch {
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", path, ErrNotFound)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", path, response.Status)
	case into == nil:
		return nil
	}
	return json.Unmarshal(body, into)
}

// object is as much as readiness needs of a Node or a Deployment.
type object struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		UpdatedReplicas    int32 `json:"updatedReplicas"`
		ReadyReplicas      int32 `json:"readyReplicas"`
		Conditions         []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// NodeReady returns nil if the node is, and otherwise what it says.
func (c *Client) NodeReady(ctx context.Context, name string) error {
	var node object
	if err := c.Get(ctx, "/api/v1/nodes/"+name, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" {
			if condition.Status == "True" {
				return nil
			}
			return fmt.Errorf("the node is not ready: %s", condition.Message)
		}
	}
	return errors.New("the node has not reported yet")
}

// DeploymentReady returns nil if all its pods are of the newest version and ready.
func (c *Client) DeploymentReady(ctx context.Context, namespace, name string) error {
	var d object
	if err := c.Get(ctx, "/apis/apps/v1/namespaces/"+namespace+"/deployments/"+name, &d); err != nil {
		return err
	}
	if d.Status.ObservedGeneration < d.Metadata.Generation || d.Status.UpdatedReplicas < d.Spec.Replicas || d.Status.ReadyReplicas < d.Spec.Replicas {
		return fmt.Errorf("deployment %s/%s: %d of %d pods are ready", namespace, name, d.Status.ReadyReplicas, d.Spec.Replicas)
	}
	return nil
}

// Poll asks until the answer is nil, and returns the last one if it never is.
func Poll(ctx context.Context, timeout time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", timeout, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
