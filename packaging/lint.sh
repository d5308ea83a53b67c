#!/bin/sh
# Checks the packages in dist/ and what is in them: lintian, rpmlint, systemd-analyze and mandoc. What is
# accepted has its reason beside it, in nfpm/lintian-overrides and nfpm/rpmlint.toml.
set -eu
cd "$(dirname "$0")/.."
. packaging/need.sh
need lintian lintian
need rpmlint rpmlint
need systemd-analyze systemd
need mandoc mandoc

set -- dist/*.deb
if [ ! -e "$1" ]; then
	echo 'lint.sh: there are no packages in dist/; run make packages' >&2
	exit 1
fi
echo '== lintian'
lintian --allow-root --fail-on error,warning --info dist/*.deb
echo '== rpmlint'
rpmlint --config packaging/nfpm/rpmlint.toml dist/*.rpm

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
for deb in dist/*_amd64.deb; do
	dpkg-deb -x "$deb" "$root"
done
units=$root/usr/lib/systemd/system

echo '== systemd-analyze verify'
# What the units need of the rest of the system: its targets, and a shell.
cp -a -n /usr/lib/systemd/system/. "$units"
install -D -m 755 /bin/sh "$root/usr/bin/sh"
ln -s usr/bin "$root/bin"
said=$(systemd-analyze verify --man=no --root="$root" tarn.socket tarn-metrics.socket tarn.service \
	tarn-snapshot.timer tarn-snapshot.service tarn-verify.timer tarn-verify.service \
	tarn-backup@nas.timer tarn-backup@nas.service 2>&1) || { echo "$said"; exit 1; }
if [ -n "$said" ]; then # a warning
	echo "$said"
	exit 1
fi

echo '== documentation that the units name'
grep -ho 'file://[^ ]*' "$units"/tarn* | sort -u | while read -r url; do
	[ -e "$root${url#file://}" ] || { echo "$url is not in the package"; exit 1; }
done
grep -ho 'man:[^ ]*' "$units"/tarn* | sort -u | sed 's/man:\(.*\)(\(.\))/man\2\/\1.\2.gz/' | while read -r page; do
	[ -e "$root/usr/share/man/$page" ] || { echo "the page $page is not in the package"; exit 1; }
done

echo '== systemd-analyze security'
# Tenths: at most 1.5 for the server, 2.5 for those that use ZFS.
for limit in tarn.service:15 tarn-snapshot.service:25 tarn-verify.service:25 tarn-backup@.service:25; do
	unit=${limit%:*}
	score=$(systemd-analyze security --offline=yes --no-pager --threshold="${limit#*:}" "$units/$unit") || { echo "$score"; exit 1; }
	echo "$score" | tail -n 1
done

echo '== mandoc'
for page in "$root"/usr/share/man/man?/*.gz; do
	gzip -d "$page"
done
mandoc -T lint -W warning "$root"/usr/share/man/man?/*
echo 'all are clean'
