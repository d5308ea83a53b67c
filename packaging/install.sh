#!/bin/sh
# install.sh [--remove] BINARY DIR: puts the files of an installed Tarn below DIR ("" for /), or takes them away.
# The configuration is only put where there is none, and never taken away.
set -eu
remove=
if [ "$1" = --remove ]; then
	remove=yes
	shift
fi
binary=$1 dest=$2
here=$(dirname "$0")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
config=/etc/tarn/tarn.yaml

if [ -n "$remove" ] && [ ! -e "$binary" ]; then
	binary=/dev/null # its name is enough
fi
"$here/stage.sh" "$binary" "$stage"
(cd "$stage" && find . -type f | sort) | while read -r file; do
	path=$dest/${file#./}
	if [ "$path" = "$dest$config" ] && { [ -n "$remove" ] || [ -e "$path" ]; }; then
		echo "kept: $path"
	elif [ -n "$remove" ]; then
		rm -f "$path"
	else
		install -D -m "$(stat -c %a "$stage/$file")" "$stage/$file" "$path"
	fi
done
if [ -n "$remove" ]; then
	rm -rf "$dest/usr/share/doc/tarn"
else
	install -d -m 755 "$dest/etc/tarn/backup"
fi
