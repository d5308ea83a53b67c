# What systemd says about the units.
. ./lib.sh
installed tarn.deb
# at_most UNIT LIMIT: the exposure of a unit, in tenths.
at_most() {
  local line
  line=$(systemd-analyze security --no-pager "$1" | grep 'Overall exposure level')
  say "$1: $line"
  ok "$1: exposure at most $2" systemd-analyze security --no-pager --threshold="$2" "$1"
}
at_most tarn.service 15
at_most tarn-snapshot.service 25
at_most tarn-verify.service 25
at_most tarn-backup@x.service 25
say "what is left of tarn.service's exposure:"
systemd-analyze security --no-pager tarn.service | grep '^✗' | sed 's/^/   /'
for unit in /usr/lib/systemd/system/tarn*; do
  name=$(basename "$unit")
  out=$(systemd-analyze verify --man=no "${name/@./@x.}" 2>&1)
  same "systemd-analyze verify $name" "" "$out"
done
ok "systemd-sysusers has nothing to say" systemd-sysusers --dry-run tarn.conf
ok "systemd-tmpfiles has nothing to say" systemd-tmpfiles --create tarn.conf
finish
