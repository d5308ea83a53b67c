#!/bin/sh
# Runs the table of package harness with the kubelet of another version of Kubernetes, and
# writes what it did to testdata: ./golden.sh 1.35.4
set -eu
cd "$(dirname "$0")"
version=$1
staging=v0.${version#1.}
here=$PWD
root=$(cd ../../.. && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The modules of that version.
cd "$work"
go mod init golden.local/golden
go mod edit -replace "github.com/tarn-kv/tarn=$root" \
	-replace "github.com/tarn-kv/tarn/zfs/eviction/kubelettest=$here" \
	-replace "k8s.io/kubernetes=k8s.io/kubernetes@v$version"
kubernetes=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
sed -n 's/^\t\(k8s\.io\/.*\) v0\.0\.0$/\1/p' "$kubernetes/go.mod" | while read -r module; do
	go mod edit -replace "$module=$module@$staging"
done
# One whose interface has changed since.
cgroups=$(sed -n 's/^\tgithub\.com\/opencontainers\/cgroups \(v[^ ]*\).*/\1/p' "$kubernetes/go.mod")
go mod edit -replace "github.com/opencontainers/cgroups=github.com/opencontainers/cgroups@$cgroups"
cat >tools.go <<'EOF'
package golden

import _ "github.com/tarn-kv/tarn/zfs/eviction/kubelettest/harness"
EOF
go mod tidy
go run github.com/tarn-kv/tarn/zfs/eviction/kubelettest/golden "v$version" >"$here/testdata/v$version.json.new"
mv "$here/testdata/v$version.json.new" "$here/testdata/v$version.json"
