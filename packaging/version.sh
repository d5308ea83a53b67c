#!/bin/sh
# Prints the version for packages, made so that dpkg and rpm sort builds as they were made:
#
#   0.1.0~123.gabcdef0    before the tag v0.1.0: 123 commits in all
#   0.1.0                 the commit with that tag
#   0.1.0+4.gabcdef0      4 commits after it
#
# The number itself is in cmd/tarn/version.go alone.
set -eu
cd "$(dirname "$0")/.."

number=$(sed -n 's/^const tarnVersion = "\(.*\)"$/\1/p' cmd/tarn/version.go)
if [ -z "$number" ]; then
	echo 'version.sh: cmd/tarn/version.go has no tarnVersion' >&2
	exit 1
fi
if ! git rev-parse --verify --quiet HEAD >/dev/null 2>&1; then
	echo "$number" # a source without its history
	exit 0
fi
commit=$(git rev-parse --short=7 HEAD)
if git merge-base --is-ancestor "refs/tags/v$number" HEAD 2>/dev/null; then
	after=$(git rev-list --count "v$number..HEAD")
	version="$number+$after.g$commit"
	[ "$after" != 0 ] || version=$number
else
	version="$number~$(git rev-list --count HEAD).g$commit"
fi
if ! git diff --quiet HEAD; then
	case $version in
	*.g*) version="$version.changed" ;;
	*) version="$version+0.g$commit.changed" ;;
	esac
fi
echo "$version"
