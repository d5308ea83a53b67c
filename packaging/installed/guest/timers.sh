# What the timers start: a snapshot, its verification, and a copy of it elsewhere.
. ./lib.sh
installed tarn.deb
ok "first request" etcdctl put key value
snapshots() { zfs list -Ho name -t snapshot "$1" 2>/dev/null | wc -l; }

ok "enable the timers" systemctl enable --now tarn-snapshot.timer tarn-verify.timer
systemctl list-timers --no-pager --no-legend 'tarn*' | sed 's/^/   /'
systemctl stop tarn-snapshot.timer tarn-verify.timer # from here on by hand
systemctl stop tarn-snapshot.service tarn-verify.service
before=$(snapshots tank/tarn)
ok "tarn-snapshot.service" systemctl start tarn-snapshot.service
same "snapshots" $((before + 1)) "$(snapshots tank/tarn)"
tarn snapshot list | sed 's/^/   /'
same "its user" tarn-backup "$(property tarn-snapshot.service User)"
ok "tarn-verify.service" systemctl start tarn-verify.service
log tarn-verify.service | tail -n 5 | sed 's/^/   /'
recorded() { zfs list -Ho tarn-kv:verified -t snapshot tank/tarn; }
say "recorded: $(recorded)"
ok "the result is recorded" test "$(recorded)" != -

# A second pool, as on another disk of this machine.
zpool create -o ashift=12 vault /dev/disk/by-id/virtio-zd1 || exit
zfs create vault/backups
zfs allow -u tarn-backup receive:append,create,mount,canmount,readonly,userprop vault/backups
mkdir -p /etc/tarn/backup
echo "TARGET=vault/backups/tarn" >/etc/tarn/backup/vault.env
ok "tarn-backup@vault.service" systemctl start tarn-backup@vault.service
log tarn-backup@vault.service | tail -n 5 | sed 's/^/   /'
ok "the pool has the snapshot" test "$(snapshots vault/backups/tarn)" -ge 1

# A directory.
install -d -o tarn-backup -g tarn-backup -m 700 /var/lib/copies
echo "TARGET=dir:/var/lib/copies" >/etc/tarn/backup/directory.env
mkdir -p /etc/systemd/system/tarn-backup@directory.service.d
printf '[Service]\nReadWritePaths=/var/lib/copies\n' >/etc/systemd/system/tarn-backup@directory.service.d/path.conf
systemctl daemon-reload
ok "tarn-backup@directory.service" systemctl start tarn-backup@directory.service
log tarn-backup@directory.service | tail -n 5 | sed 's/^/   /'
find /var/lib/copies -type f | head -n 5 | sed 's/^/   /'
ok "the directory has the snapshot" test -n "$(find /var/lib/copies -type f)"
finish
