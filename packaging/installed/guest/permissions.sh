# What the server's user can do in the sandbox of its unit is tried by a program that stands
# in for tarn there: everything else in the unit stays as it is.
. ./lib.sh
installed tarn.deb
ok "first request" etcdctl put key value

# What it must not reach. The control shows that all of it is there.
useradd --create-home alice
install -d -o alice -m 755 /var/lib/other
echo secret | install -o alice -m 600 /dev/stdin /var/lib/other/secret
for file in ~alice/notes ~root/notes /tmp/probe-notes; do echo secret | install -m 644 /dev/stdin $file; done
chmod 755 ~root ~alice
ip address add 192.0.2.1/32 dev lo
probe host >/run/probe-host &
other=$!
within "another service listens" 60 grep -q listening /run/probe-host
systemctl stop tarn.service
ok "control: root can do everything" probe control

install -m 755 "$(command -v probe)" /usr/local/lib/probe
mkdir -p /run/systemd/system/tarn.service.d
cat >/run/systemd/system/tarn.service.d/probe.conf <<'UNIT'
[Service]
Type=oneshot
Restart=no
BindReadOnlyPaths=/usr/local/lib/probe:/usr/bin/tarn
StandardOutput=append:/run/probe-report
UNIT
systemctl daemon-reload
ok "nothing is possible that should not be" systemctl start tarn.service
sed 's/^/   /' /run/probe-report
rm -r /run/systemd/system/tarn.service.d
systemctl daemon-reload
kill "$other"
systemctl reset-failed tarn.service
same "the key, from the server itself" value "$(key key)"

# Who may connect.
same "mode and owner of the unix socket" "660 root tarn" "$(stat -c '%a %U %G' /run/tarn/tarn.sock)"
as() { # user's group, time-out
  setpriv --reuid alice --regid "$1" --clear-groups env ETCDCTL_ENDPOINTS=unix:/run/tarn/tarn.sock etcdctl --command-timeout="$2" get key
}
ok "a member of the group can connect to the unix socket" as tarn 2m
ok "another user can not" not as alice 5s
same "owner and mode of the data" "tarn 700" "$(stat -c '%U %a' /var/lib/tarn)"
ok "the user of the backups can not read them" not setpriv --reuid tarn-backup --clear-groups ls /var/lib/tarn
finish
