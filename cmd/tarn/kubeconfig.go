package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kubeconfig is a file that tells kubectl how to reach a cluster, as far as it is needed here.
type kubeconfig struct {
	CurrentContext string `yaml:"current-context"`
	Contexts       []struct {
		Name    string `yaml:"name"`
		Context struct {
			Cluster string `yaml:"cluster"`
			User    string `yaml:"user"`
		} `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []struct {
		Name    string      `yaml:"name"`
		Cluster kubeCluster `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string   `yaml:"name"`
		User kubeUser `yaml:"user"`
	} `yaml:"users"`
}

type kubeCluster struct {
	Server        string `yaml:"server"`
	CAFile        string `yaml:"certificate-authority"`
	CAData        string `yaml:"certificate-authority-data"`
	TLSServerName string `yaml:"tls-server-name"`
	Insecure      bool   `yaml:"insecure-skip-tls-verify"`
}

type kubeUser struct {
	CertFile  string    `yaml:"client-certificate"`
	CertData  string    `yaml:"client-certificate-data"`
	KeyFile   string    `yaml:"client-key"`
	KeyData   string    `yaml:"client-key-data"`
	Token     string    `yaml:"token"`
	TokenFile string    `yaml:"tokenFile"`
	Name      string    `yaml:"username"`
	Password  string    `yaml:"password"`
	Exec      yaml.Node `yaml:"exec"`
	Provider  yaml.Node `yaml:"auth-provider"`
}

// kubeClient asks an API server. It is not changed after it was made.
type kubeClient struct {
	server         *url.URL
	http           *http.Client
	token          string
	user, password string
}

// newKubeClient reads a kubeconfig and makes a client for its current context.
func newKubeClient(file string) (*kubeClient, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", withAdvice(err, "run the command as root (sudo), or name another file"))
	}
	var config kubeconfig
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("--kubeconfig %s is not YAML: %w", file, err)
	}
	c, err := config.client(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", file, err)
	}
	return c, nil
}

// client makes a client. Relative paths in the file are relative to its directory.
func (k *kubeconfig) client(dir string) (*kubeClient, error) {
	cluster, user, err := k.current()
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(cluster.Server)
	if err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" {
		return nil, fmt.Errorf("the server %q is not an URL such as https://127.0.0.1:6443", cluster.Server)
	}
	if !user.Exec.IsZero() || !user.Provider.IsZero() {
		return nil, errors.New("it gets its credentials from another program, which tarn does not run; name a file with a certificate or a token, on k3s /etc/rancher/k3s/k3s.yaml")
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cluster.TLSServerName, InsecureSkipVerify: cluster.Insecure}
	ca, err := fileOrData(dir, cluster.CAFile, cluster.CAData)
	if err != nil {
		return nil, fmt.Errorf("certificate-authority: %w", err)
	}
	if ca != nil {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("certificate-authority holds no certificate")
		}
	}
	if err := user.addCertificate(dir, settings); err != nil {
		return nil, err
	}
	c := &kubeClient{server: server, token: user.Token, user: user.Name, password: user.Password}
	if user.TokenFile != "" {
		token, err := fileOrData(dir, user.TokenFile, "")
		if err != nil {
			return nil, fmt.Errorf("tokenFile: %w", err)
		}
		c.token = strings.TrimSpace(string(token))
	}
	// A proxy of the environment is not for a server that is mostly this machine.
	c.http = &http.Client{Transport: &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true}}
	return c, nil
}

func (u *kubeUser) addCertificate(dir string, settings *tls.Config) error {
	cert, err := fileOrData(dir, u.CertFile, u.CertData)
	if err != nil {
		return fmt.Errorf("client-certificate: %w", err)
	}
	key, err := fileOrData(dir, u.KeyFile, u.KeyData)
	if err != nil {
		return fmt.Errorf("client-key: %w", err)
	}
	if cert == nil && key == nil {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("client-certificate and client-key: %w", err)
	}
	settings.Certificates = []tls.Certificate{pair}
	return nil
}

func (k *kubeconfig) current() (cluster kubeCluster, user kubeUser, err error) {
	if k.CurrentContext == "" {
		return cluster, user, errors.New("it has no current-context")
	}
	clusterName, userName, found := "", "", false
	for _, c := range k.Contexts {
		if c.Name == k.CurrentContext {
			clusterName, userName, found = c.Context.Cluster, c.Context.User, true
		}
	}
	if !found {
		return cluster, user, fmt.Errorf("it has no context %q, which is its current-context", k.CurrentContext)
	}
	found = false
	for _, c := range k.Clusters {
		if c.Name == clusterName {
			cluster, found = c.Cluster, true
		}
	}
	if !found {
		return cluster, user, fmt.Errorf("it has no cluster %q", clusterName)
	}
	for _, u := range k.Users {
		if u.Name == userName {
			user = u.User
		}
	}
	return cluster, user, nil
}

// fileOrData reads what is given as a file or in base64; nil if neither is. Data win.
func fileOrData(dir, file, data string) ([]byte, error) {
	switch {
	case data != "":
		return base64.StdEncoding.DecodeString(data)
	case file == "":
		return nil, nil
	case !filepath.IsAbs(file):
		file = filepath.Join(dir, file)
	}
	return os.ReadFile(file)
}

// maxKubeAnswer is far more than the summary of a node with hundreds of pods has.
const maxKubeAnswer = 64 << 20

// get asks for a path and decodes the answer.
func (c *kubeClient) get(ctx context.Context, path string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server.JoinPath(path).String(), nil)
	if err != nil {
		return err
	}
	switch {
	case c.token != "":
		req.Header.Set("Authorization", "Bearer "+c.token)
	case c.user != "":
		req.SetBasicAuth(c.user, c.password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKubeAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("ask the API server for %s: %w", path, err)
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the API server does not allow it to GET %s (%s); use a kubeconfig that may get nodes and nodes/proxy, on k3s /etc/rancher/k3s/k3s.yaml", path, resp.Status)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the API server answers GET %s with %s: %s", path, resp.Status, statusMessage(body))
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("the API server answers GET %s with something else than expected: %w", path, err)
	}
	return nil
}

// statusMessage is the text in an error of the API server.
func statusMessage(body []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return status.Message
	}
	const enough = 200
	return strings.TrimSpace(string(body[:min(len(body), enough)]))
}
