#!/bin/sh
# Prints the licenses of all that is linked into the binary, from Go's module cache.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}

print() { # print NAME DIR
	found=
	for file in "$2"/LICENSE* "$2"/LICENCE* "$2"/COPYING* "$2"/NOTICE*; do
		if [ -f "$file" ]; then
			found=yes
			printf '\n==== %s: %s\n\n' "$1" "${file##*/}"
			cat "$file"
		fi
	done
	if [ -z "$found" ]; then
		echo "notices.sh: $1 has no license file in $2" >&2
		exit 1
	fi
}

echo 'The program tarn contains the following software, under the terms that follow each name.'
print "Go $($go env GOVERSION)" "$($go env GOROOT)"
CGO_ENABLED=0 GOOS=linux $go list -tags grpcnotrace -deps \
	-f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/tarn |
	sort -u | while read -r path version dir; do
	print "$path $version" "$dir"
done
