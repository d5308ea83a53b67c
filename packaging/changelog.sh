#!/bin/sh
# changelog.sh deb|rpm VERSION: prints CHANGELOG.md in Debian's form, or as the YAML from which nfpm makes
# that of an rpm. The newest entry gets the version of the package; one without a date has that of the commit.
set -eu
cd "$(dirname "$0")/.."
now=$(date -u -d "@${SOURCE_DATE_EPOCH:?}" +%Y-%m-%d)
awk -v form="$1" -v version="$2" -v now="$now" '
BEGIN { who = "Tarn maintainers <maintainers@users.noreply.github.com>" }
function wrapped(s,  words, n, i, out, line) {
	n = split(s, words, " ")
	line = "  *"
	for (i = 1; i <= n; i++) {
		if (length(line) + 1 + length(words[i]) > 78) {
			out = out line "\n"
			line = "   "
		}
		line = line " " words[i]
	}
	return out line
}
function quoted(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
function flush() {
	if (item != "") print form == "deb" ? wrapped(item) : "    - note: " quoted(item)
	item = ""
}
function close_entry(  at, command) {
	flush()
	if (n == 0 || form != "deb") return
	command = "LC_ALL=C date -u -R -d " date
	command | getline at
	close(command)
	print "\n -- " who "  " at "\n"
}
/^## / {
	close_entry()
	n++
	date = $3
	gsub(/[()]/, "", date)
	if (date !~ /^[0-9]+-[0-9]+-[0-9]+$/) date = now
	number = n == 1 ? version : $2 "-1"
	if (form == "deb") {
		print "tarn (" number ") unstable; urgency=medium\n"
	} else {
		print "- semver: " quoted(number)
		print "  date: " date "T00:00:00Z"
		print "  packager: " who
		print "  changes:"
	}
	next
}
n && /^- / { flush(); item = substr($0, 3); next }
n && /^  / { item = item " " substr($0, 3); next }
END { close_entry() }
' CHANGELOG.md
