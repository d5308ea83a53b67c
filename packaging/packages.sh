#!/bin/sh
# packages.sh [ARCH…]: makes the .deb and the .rpm for each architecture (amd64 and arm64) in dist/. The
# same source and the same Go make the same bytes: all times are that of the commit.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
[ $# -gt 0 ] || set -- amd64 arm64

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
TARN_VERSION=$(packaging/version.sh)
export SOURCE_DATE_EPOCH TARN_VERSION
umask 022

work=$PWD/dist/work
rm -rf "$work"
mkdir -p "$work/made"
trap 'rm -rf "$work"' EXIT
(cd packaging/nfpm && $go build -o "$work/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm)

# contents KIND STAGE: what is below STAGE, as nfpm wants it. The configuration is in nfpm/tarn.yaml.
contents() {
	(cd "$2" && find . -type f | LC_ALL=C sort) | while read -r file; do
		path=${file#.}
		type=file
		case $1$path in
		*/etc/* | deb*/CHANGELOG.md) continue ;;
		rpm/usr/share/zsh/*) path=/usr/share/zsh/site-functions/_tarn ;;
		rpm/usr/share/doc/* | rpm/usr/share/man/*) type=doc ;;
		esac
		printf '  - src: %s\n    dst: %s\n    type: %s\n' "$2/${file#./}" "$path" "$type"
	done
}

for TARN_ARCH; do
	export TARN_ARCH
	binary=$work/tarn-$TARN_ARCH
	stage=$work/$TARN_ARCH
	GOARCH=$TARN_ARCH packaging/binary.sh "$binary"
	packaging/stage.sh "$binary" "$stage"
	for kind in deb rpm; do
		config=$work/$TARN_ARCH-$kind.yaml
		cp packaging/nfpm/tarn.yaml "$config"
		packaging/changelog.sh "$kind" "$TARN_VERSION-1" >"$work/changelog"
		if [ "$kind" = deb ]; then
			gzip -9n <"$work/changelog" >"$stage/usr/share/doc/tarn/changelog.Debian.gz"
			gzip -9n <CHANGELOG.md >"$stage/usr/share/doc/tarn/changelog.gz"
		else
			rm "$stage"/usr/share/doc/tarn/changelog*.gz
			echo "changelog: $work/changelog" | cat - "$config" >"$config.new"
			mv "$config.new" "$config"
		fi
		find "$stage" -exec touch --no-dereference -d "@$SOURCE_DATE_EPOCH" {} +
		contents "$kind" "$stage" >>"$config"
		"$work/nfpm" package --config "$config" --packager "$kind" --target "$work/made/"
	done
done
rm -f dist/*.deb dist/*.rpm
mv "$work"/made/* dist/
ls -l dist/*.deb dist/*.rpm
