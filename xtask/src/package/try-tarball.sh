#!/bin/sh
# Installs neardup's archive into a copy of a server and uses the extension there. Changes nothing
# else. FOLDER has the whole server with its libraries, like the servers that
# `cargo xtask test --pg 16` unpacks. PG_CONFIG is the path of its pg_config within FOLDER. Called
# as root, the script runs the copied server as the user nobody. Requires psql on PATH.
#
#   sh xtask/src/package/try-tarball.sh ARCHIVE FOLDER PG_CONFIG
set -eu

[ $# -eq 3 ] || { echo "usage: try-tarball.sh ARCHIVE FOLDER PG_CONFIG" >&2; exit 2; }
archive=$1
here=$(dirname "$0")

folder=$(mktemp -d)
chmod 755 "$folder"
started=
finish() {
    [ -z "$started" ] || as_user "$bin/pg_ctl" -D "$folder/run/data" -m fast -w stop
    rm -rf "$folder"
}
trap finish EXIT
as_user() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid nobody --regid nogroup --clear-groups -- "$@"
    else
        "$@"
    fi
}

cp -a "$2" "$folder/server"
bin=$(dirname "$folder/server/$3")
tar -xzf "$archive" -C "$folder"
name=$(basename "$archive" .tar.gz)
sh "$folder/$name/install.sh" --pg-config "$folder/server/$3"
case $(find "$folder/server" -name neardup.so) in
"$folder"/server/*) ;;
*) echo "the library is not in the copy of the server" >&2; exit 1 ;;
esac

mkdir "$folder/run"
[ "$(id -u)" != 0 ] || chown nobody:nogroup "$folder/run"
as_user "$bin/initdb" -D "$folder/run/data" -A trust -U postgres >/dev/null
as_user "$bin/pg_ctl" -D "$folder/run/data" -w -l "$folder/run/log" \
    -o "-c listen_addresses='' -c unix_socket_directories=$folder/run" start
started=1
found=$(psql -X -h "$folder/run" -U postgres -tA -f "$here/try.sql" postgres)
echo "$found"
[ "$(echo "$found" | tail -n 1)" = "7 1001" ] || {
    echo "the index did not find the two equal texts" >&2
    exit 1
}
echo "The archive can be installed and used."
