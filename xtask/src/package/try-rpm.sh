#!/bin/sh
# Installs an RPM package of neardup into a temporary root folder, beside a copy of the server that
# it was built for, uses the extension there and removes the package. Changes nothing else. Requires
# root, rpm, and psql on PATH. PG_CONFIG is the pg_config of the server.
#
#   sh xtask/src/package/try-rpm.sh PACKAGE PG_CONFIG
set -eu

[ $# -eq 2 ] || { echo "usage: try-rpm.sh PACKAGE PG_CONFIG" >&2; exit 2; }
package=$1
config=$2
here=$(dirname "$0")
bin=$("$config" --bindir)

root=$(mktemp -d)
chmod 755 "$root"
started=
finish() {
    [ -z "$started" ] || as_nobody "$root$bin/pg_ctl" -D "$root/run/data" -m fast -w stop
    rm -rf "$root"
}
trap finish EXIT
as_nobody() { setpriv --reuid nobody --regid nogroup --clear-groups -- "$@"; }
in_root() { rpm --root "$root" --dbpath /var/lib/rpm "$@"; }

# The copied server finds its folders relative to its programs.
for folder in "$bin" "$("$config" --pkglibdir)" "$("$config" --sharedir)"; do
    mkdir -p "$root$folder"
    cp -a "$folder/." "$root$folder/"
done
find "$root" -name 'neardup*' -delete

# The package requires a server package, but rpm does not know the copied server.
options=--nodeps
# On Debian, rpm installs packages only with this option.
[ ! -e /etc/debian_version ] || options="$options --force-debian"
in_root --initdb
# shellcheck disable=SC2086
in_root --install $options "$package"
name=$(in_root --query --all --queryformat '%{NAME}\n')
in_root --verify --nodeps "$name"
in_root --query --list "$name"

mkdir "$root/run"
chown nobody:nogroup "$root/run"
as_nobody "$root$bin/initdb" -D "$root/run/data" -A trust -U postgres >/dev/null
as_nobody "$root$bin/pg_ctl" -D "$root/run/data" -w -l "$root/run/log" \
    -o "-c listen_addresses='' -c unix_socket_directories=$root/run" start
started=1
found=$(psql -X -h "$root/run" -U postgres -tA -f "$here/try.sql" postgres)
echo "$found"
[ "$(echo "$found" | tail -n 1)" = "7 1001" ] || {
    echo "the index did not find the two equal texts" >&2
    exit 1
}

# shellcheck disable=SC2086
in_root --erase $options "$name"
[ -z "$(find "$root$("$config" --pkglibdir)" "$root$("$config" --sharedir)" -name 'neardup*')" ]
echo "The package can be installed, used and removed."
