#!/bin/sh
# stage.sh BINARY DIR: puts all files of an installed Tarn below DIR, as make install and the
# packages have them. It needs Go for the manual pages, and sets no owner.
set -eu
binary=$1 dest=$2
cd "$(dirname "$0")/.."
go=${GO:-go}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

put() { # put MODE FILE PATH
	install -D -m "$1" "$2" "$dest$3"
}

put 755 "$binary" /usr/bin/tarn
put 644 packaging/tarn.yaml /etc/tarn/tarn.yaml
install -d -m 755 "$dest/etc/tarn/backup"
for unit in packaging/systemd/*.socket packaging/systemd/*.service packaging/systemd/*.timer; do
	put 644 "$unit" "/usr/lib/systemd/system/${unit##*/}"
done
put 644 packaging/systemd/sysusers.conf /usr/lib/sysusers.d/tarn.conf
put 644 packaging/systemd/tmpfiles.conf /usr/lib/tmpfiles.d/tarn.conf

$go run -tags manual ./cmd/tarn "$made"
for page in "$made"/man?/*; do
	gzip -9n "$page"
	section=${page%/*}
	put 644 "$page.gz" "/usr/share/man/${section##*/}/${page##*/}.gz"
done
put 644 "$made/completions/tarn.bash" /usr/share/bash-completion/completions/tarn
put 644 "$made/completions/tarn.zsh" /usr/share/zsh/vendor-completions/_tarn
put 644 "$made/completions/tarn.fish" /usr/share/fish/vendor_completions.d/tarn.fish

doc=/usr/share/doc/tarn
put 644 README.md "$doc/README.md"
put 644 CHANGELOG.md "$doc/CHANGELOG.md"
for page in docs/*.md; do
	put 644 "$page" "$doc/$page"
done
(cd packaging/examples && find . -type f) | sort | while read -r example; do
	put 644 "packaging/examples/$example" "$doc/examples/${example#./}"
done
packaging/notices.sh >"$made/notices"
put 644 "$made/notices" "$doc/third-party-notices.txt"
