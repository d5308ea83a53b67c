# need PROGRAM PACKAGE: installs a package of Debian if the program is missing. To be sourced.
need() {
	command -v "$1" >/dev/null && return
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		echo "$1 is missing: install the package $2" >&2
		exit 1
	fi
	if [ -z "${updated:-}" ]; then
		apt-get update -qq
		updated=yes
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$2" >/dev/null
}
