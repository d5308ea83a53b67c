#!/bin/sh
# Proves of the packages: made twice, in two places, they are the same bytes; versions sort as they should; both
# kinds install into an empty root, are upgraded, removed and purged there, and data and configuration stay as
# docs/install.md says; the arm64 program runs and keeps what it is told. Needs root, and Debian for apt-get.
set -eu
cd "$(dirname "$0")/.."
. packaging/need.sh
need rpm rpm
need busybox busybox-static
need qemu-aarch64-static qemu-user-static
need curl curl
need systemd-sysusers systemd

work=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

echo '== the same bytes, twice, in two places'
mkdir "$work/one"
tar -c --exclude=./dist --exclude=./bin . | tar -x -C "$work/one"
cp -a "$work/one" "$work/two"
"$work/one/packaging/packages.sh" >/dev/null
"$work/two/packaging/packages.sh" >/dev/null
cd "$work/one"
for package in dist/*.deb dist/*.rpm; do
	cmp "$package" "$work/two/$package" || fail "$package is not the same in both places"
done
set -- dist/*.deb dist/*.rpm
[ $# = 4 ] || fail "there are $# packages, not 4"

echo '== versions'
last=0
for version in 0.1.0~9.gfffffff 0.1.0~10.g0000000 0.1.0 0.1.0+1.gfffffff 0.1.0+12.g0000000 0.1.1~13.g0000000 0.1.1; do
	dpkg --compare-versions "$last-1" lt "$version-1" || fail "dpkg: $version is not newer than $last"
	[ "$(rpm --eval "%{lua:print(rpm.vercmp('$last-1', '$version-1'))}")" = -1 ] || fail "rpm: $version is not newer than $last"
	last=$version
done

# kept ROOT: what a user has made is still there.
kept() {
	[ "$(cat "$1/var/lib/tarn/tree.db")" = data ] || fail "the data are gone from $1"
}

# has ROOT FILE… and lacks ROOT FILE…
has() {
	in=$1
	shift
	for file; do [ -e "$in$file" ] || fail "$in$file is missing"; done
}
lacks() {
	in=$1
	shift
	for file; do [ ! -e "$in$file" ] || fail "$in$file is there"; done
}

users() {
	for user in tarn tarn-backup; do
		grep -q "^$user:.*:/usr/sbin/nologin$" "$1/etc/passwd" || fail "there is no user $user in $1"
	done
}

installed='/usr/bin/tarn /usr/lib/systemd/system/tarn.socket /usr/lib/systemd/system/tarn.service /etc/tarn/tarn.yaml
	/usr/share/man/man1/tarn-serve.1.gz /usr/share/man/man5/tarn.yaml.5.gz /usr/share/bash-completion/completions/tarn'
package_of() { ls dist/*"$1"; }

echo '== deb: install, upgrade, remove, reinstall, purge'
root=$work/deb
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/etc" "$root/var/lib/tarn"
touch "$root/var/lib/dpkg/status"
deb() {
	dpkg --root="$root" --log=/dev/null --force-script-chrootless --force-depends --force-confold "$@" >"$work/said" 2>&1 ||
		{ cat "$work/said" >&2; fail "dpkg $*"; }
}
# shellcheck disable=SC2086
{
	deb -i "$(package_of _amd64.deb)"
	has "$root" $installed
	users "$root"
	lacks "$root" /etc/systemd/system/sockets.target.wants /etc/systemd/system/multi-user.target.wants
	echo data >"$root/var/lib/tarn/tree.db"
	echo 'data-dir: /var/lib/tarn' >>"$root/etc/tarn/tarn.yaml"
	deb -i "$(package_of _amd64.deb)"
	grep -q '^data-dir' "$root/etc/tarn/tarn.yaml" || fail 'the upgrade has changed the configuration'
	deb -r tarn
	lacks "$root" /usr/bin/tarn /usr/lib/systemd/system/tarn.socket
	has "$root" /etc/tarn/tarn.yaml
	kept "$root"
	deb -i "$(package_of _amd64.deb)"
	grep -q '^data-dir' "$root/etc/tarn/tarn.yaml" || fail 'the new installation has changed the configuration'
	deb -P tarn
	grep -q 'data are kept' "$work/said" || fail 'the purge does not tell that the data are kept'
	lacks "$root" /usr/bin/tarn /etc/tarn
	kept "$root"
}

echo '== rpm: install, upgrade, remove'
root=$work/rpm
mkdir -p "$root/etc" "$root/bin" "$root/usr/bin" "$root/usr/lib" "$root/var/lib/tarn" "$root/dev"
cp /bin/busybox "$root/bin/sh"
# sysusers and what it is linked with, so that the scripts do what they do on a real system.
cp "$(command -v systemd-sysusers)" "$root/usr/bin/"
ldd "$(command -v systemd-sysusers)" | grep -o '/[^ ]*' | while read -r library; do
	install -D "$library" "$root$library"
done
red() {
	rpm --root "$root" "$@" >"$work/said" 2>&1 || { cat "$work/said" >&2; fail "rpm $*"; }
}
# shellcheck disable=SC2086
{
	red --initdb
	red -i --nodeps "$(package_of x86_64.rpm)"
	has "$root" $installed /usr/share/zsh/site-functions/_tarn /usr/share/licenses/tarn/LICENSE
	users "$root"
	red --verify --nodeps tarn
	echo data >"$root/var/lib/tarn/tree.db"
	echo 'data-dir: /var/lib/tarn' >>"$root/etc/tarn/tarn.yaml"
	red -U --nodeps --force "$(package_of x86_64.rpm)"
	grep -q '^data-dir' "$root/etc/tarn/tarn.yaml" || fail 'the upgrade has changed the configuration'
	red -e tarn
	lacks "$root" /usr/bin/tarn /usr/lib/systemd/system/tarn.socket
	has "$root" /etc/tarn/tarn.yaml.rpmsave
	kept "$root"
}

echo '== make install, make uninstall'
root=$work/make
packaging/install.sh bin/none "$root" 2>/dev/null && fail 'a binary that is missing was installed'
dpkg-deb --fsys-tarfile "$(package_of _amd64.deb)" | tar -x -O ./usr/bin/tarn >"$work/tarn"
chmod 755 "$work/tarn"
mkdir -p "$root/usr/share/zsh" # of somebody else
packaging/install.sh "$work/tarn" "$root"
packaging/install.sh "$work/tarn" "$root"
# shellcheck disable=SC2086
has "$root" $installed /usr/share/licenses/tarn/LICENSE
echo 'data-dir: /var/lib/tarn' >>"$root/etc/tarn/tarn.yaml"
packaging/install.sh --remove "$work/tarn" "$root" >/dev/null
left=$(cd "$root" && find . -mindepth 1 | LC_ALL=C sort | tr '\n' ' ')
[ "$left" = './etc ./etc/tarn ./etc/tarn/tarn.yaml ./usr ./usr/share ./usr/share/zsh ' ] || fail "make uninstall leaves $left"

echo '== arm64 under emulation'
dpkg-deb -x "$(package_of _arm64.deb)" "$work/arm64"
arm64="qemu-aarch64-static $work/arm64/usr/bin/tarn"
$arm64 version
start() {
	$arm64 serve --data-dir "$work/data" --listen-client-urls http://127.0.0.1:23790 2>"$work/log" &
	server=$!
	curl --silent --fail --retry 60 --retry-delay 1 --retry-connrefused \
		http://127.0.0.1:23790/health >/dev/null || { cat "$work/log" >&2; fail 'the arm64 server does not answer'; }
}
stop() {
	kill "$server"
	wait "$server" || { cat "$work/log" >&2; fail 'the arm64 server did not end well'; }
	server=
}
ask() { curl --silent --show-error --fail "http://127.0.0.1:23790/v3/kv/$1" -d "$2"; }
key=$(printf /registry/pods/a | base64) value=$(printf running | base64)
start
ask put "{\"key\":\"$key\",\"value\":\"$value\"}" >/dev/null
"$work/tarn" status --endpoint http://127.0.0.1:23790 >/dev/null || fail 'tarn status is not well'
stop
$arm64 check "$work/data" >/dev/null || fail 'tarn check of what the arm64 server wrote'
"$work/tarn" check "$work/data" >/dev/null || fail 'tarn check on amd64 of what the arm64 server wrote'
start
ask range "{\"key\":\"$key\"}" | grep -q "\"$value\"" || fail 'the arm64 server has lost a key'
stop
echo 'all is well'
