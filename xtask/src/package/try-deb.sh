#!/bin/sh
# Installs neardup's Debian package into a new Debian system in FOLDER, uses the extension there and
# purges the package. Requires root and debootstrap. Changes nothing outside FOLDER.
#
#   sh xtask/src/package/try-deb.sh PACKAGE FOLDER [RELEASE [MIRROR]]
set -eu

[ $# -ge 2 ] || { echo "usage: try-deb.sh PACKAGE FOLDER [RELEASE [MIRROR]]" >&2; exit 2; }
package=$1
root=$2
release=${3:-bookworm}
mirror=${4:-http://deb.debian.org/debian}
major=$(basename "$package" | sed 's/^postgresql-\([0-9]*\)-.*/\1/')
as_postgres() { within setpriv --reuid postgres --regid postgres --clear-groups "$@"; }
within() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "$@"; }
bin=/usr/lib/postgresql/$major/bin

if [ ! -e "$root/usr/bin/apt-get" ]; then
    # debootstrap may lack a script for a newer release. The script for sid (unstable) works.
    script=/usr/share/debootstrap/scripts/$release
    [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
    debootstrap --variant=minbase "$release" "$root" "$mirror" "$script"
fi

started=
finish() {
    [ -z "$started" ] || as_postgres "$bin/pg_ctl" -D /tmp/data -m fast -w stop
    umount "$root/proc"
}
# The installation scripts of newer packages read /proc.
mount -t proc proc "$root/proc"
trap finish EXIT
cp "$package" "$root/tmp/"
within apt-get -q update
# apt also installs the server, because the package depends on it.
within apt-get -q install -y --no-install-recommends "/tmp/$(basename "$package")"
within dpkg --verify "postgresql-$major-neardup"

within rm -rf /tmp/data
as_postgres "$bin/initdb" -D /tmp/data -A trust >/dev/null
as_postgres "$bin/pg_ctl" -D /tmp/data -w -l /tmp/data/log \
    -o "-c listen_addresses='' -c unix_socket_directories=/tmp/data" start
started=1

cp "$(dirname "$0")/try.sql" "$root/tmp/"
found=$(within psql -X -h /tmp/data -U postgres -tA -f /tmp/try.sql postgres)
echo "$found"
[ "$(echo "$found" | tail -n 1)" = "7 1001" ] || {
    echo "the index did not find the two equal texts" >&2
    exit 1
}
within dpkg --purge "postgresql-$major-neardup"
left=$(find "$root" -xdev -path "$root/tmp" -prune -o -name '*neardup*' -print)
[ -z "$left" ] || { echo "not removed: $left" >&2; exit 1; }
echo "The package can be installed, used and removed."
