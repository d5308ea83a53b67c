package main

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// exampleDropIn is the drop-in for k3s' unit in packaging/examples, and docFiles are files that the manual has
// had for copying. Who followed it has nothing of their own in them.
const exampleDropIn = `[Unit]
Wants=tarn.service
After=tarn.socket tarn.service
RequiresMountsFor=/var/lib/rancher /var/lib/kubelet
`

var docFiles = []string{
	exampleDropIn,
	"[Unit]\nWants=tarn.service\nAfter=tarn.socket tarn.service\n",
	docConfig("http://127.0.0.1:2379"),
	docConfig("unix://" + installedSocket),
}

func docConfig(endpoint string) string {
	lines := []string{"datastore-endpoint: " + endpoint}
	for _, c := range k3sComponents {
		lines = append(lines, c+`-arg+: ["leader-elect=false"]`)
	}
	return strings.Join(lines, "\n") + "\n"
}

// takeOver looks at a file that tarn k3s setup did not make. One with the settings that it should have is as it should
// be, and one that is from the manual is replaced or removed as our own.
func (f setupFile) takeOver() setupFile {
	if f.State != fileForeign || f.Link != "" {
		return f
	}
	same := func(text string) bool { return sameSetup(f.Path, f.before, text) }
	switch {
	case f.Content != "" && same(f.Content):
		f.State, f.Content = fileSame, f.before
	case slices.ContainsFunc(docFiles, same) && f.Content == "":
		f.State = fileRemoved
	case slices.ContainsFunc(docFiles, same):
		f.State = fileChanged
	}
	return f
}

// sameSetup tells whether two texts of a file mean the same.
func sameSetup(file, a, b string) bool {
	if path.Ext(file) != ".yaml" {
		return sameSettings(a, b)
	}
	var x, y map[string]any
	return yaml.Unmarshal([]byte(a), &x) == nil && yaml.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
