package main

import "strings"

// kubeKey is what the key of an object of Kubernetes tells.
type kubeKey struct {
	Type      string `json:"type"`                // "pods", "cilium.io/ciliumnodes"; "" for another key
	Namespace string `json:"namespace,omitempty"` // "" if it has none
	Name      string `json:"name"`                // the whole key if it is not one of Kubernetes
}

// parseKubeKey reads /registry/TYPE[/NAMESPACE]/NAME. The type of a custom resource, or of one
// with a part, has two words.
func parseKubeKey(key string) kubeKey {
	rest, ok := strings.CutPrefix(key, "/registry/")
	parts := strings.Split(rest, "/")
	words := 1
	if strings.Contains(parts[0], ".") || parts[0] == "services" {
		words = 2
	}
	if !ok || len(parts) <= words {
		return kubeKey{Name: key}
	}
	k := kubeKey{Type: strings.Join(parts[:words], "/")}
	parts = parts[words:]
	if len(parts) > 1 {
		k.Namespace, parts = parts[0], parts[1:]
	}
	k.Name = strings.Join(parts, "/")
	return k
}

// object is namespace and name.
func (k kubeKey) object() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}
