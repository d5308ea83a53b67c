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
install -D -m 644 "$here/../LICENSE" "$stage/usr/share/licenses/tarn/LICENSE" # a .rpm has it there, a .deb names Debian's

# The directories that are made here are noted, so that none of somebody else's is removed for being empty.
list=$dest/usr/share/doc/tarn/directories
if [ -z "$remove" ]; then
	made=$({ cat "$list" 2>/dev/null || true; (cd "$stage" && find . -mindepth 1 -type d) | while read -r dir; do
		[ -d "$dest/${dir#./}" ] || echo "${dir#./}"
	done; } | sort -u)
fi
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
	made=$(cat "$list" 2>/dev/null || true)
	rm -rf "$dest/usr/share/doc/tarn"
	echo "$made" | sort -r | while read -r dir; do
		[ -z "$dir" ] || rmdir "$dest/$dir" 2>/dev/null || true
	done
else
	install -d -m 755 "$dest/etc/tarn/backup"
	echo "$made" >"$list"
	chmod 644 "$list"
fi
