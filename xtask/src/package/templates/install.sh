#!/bin/sh
# Installs neardup {version}, built for PostgreSQL {major}, into the server of pg_config.
#
#   sh install.sh [--pg-config PROGRAM] [--destdir FOLDER]
set -eu

major={major}
machine={machine}
pg_config=${PG_CONFIG:-pg_config}
destdir=${DESTDIR:-}

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    --pg-config | --destdir)
        [ $# -ge 2 ] || fail "$1 needs a value"
        if [ "$1" = --pg-config ]; then pg_config=$2; else destdir=$2; fi
        shift 2
        ;;
    --pg-config=*) pg_config=${1#*=}; shift ;;
    --destdir=*) destdir=${1#*=}; shift ;;
    -h | --help)
        echo "usage: sh install.sh [--pg-config PROGRAM] [--destdir FOLDER]"
        exit 0
        ;;
    *) fail "unknown argument: $1 (--help lists those that there are)" ;;
    esac
done

command -v "$pg_config" >/dev/null 2>&1 ||
    fail "there is no $pg_config: name the server's with --pg-config PROGRAM"
found=$("$pg_config" --version) || fail "$pg_config does not work"
case $found in
"PostgreSQL $major" | "PostgreSQL $major"[!0-9]*) ;;
*) fail "these files are for PostgreSQL $major, and $pg_config is of $found:" \
    "take the archive of that version, or name another pg_config with --pg-config PROGRAM" ;;
esac
[ "$(uname -s) $(uname -m)" = "Linux $machine" ] ||
    fail "these files are for Linux on $machine, not for $(uname -s) on $(uname -m)"

# A program contains the path of its dynamic linker.
if grep -q ld-musl "$("$pg_config" --bindir)/postgres" 2>/dev/null; then
    fail "these files need glibc, and the server of $pg_config uses musl: build neardup from its" \
        "sources with cargo xtask install --pg-config $pg_config"
fi

files=$(dirname -- "$0")
library=$destdir$("$pg_config" --pkglibdir)
share=$destdir$("$pg_config" --sharedir)/extension
mkdir -p -- "$library" "$share" || fail "cannot make the folders; run this as root"

# Each file is written beside its place and renamed: sessions keep the library that they have.
place() {
    if rm -f -- "$3.new" && cp -- "$2" "$3.new" && chmod "$1" "$3.new" && mv -f -- "$3.new" "$3"
    then
        echo "$3"
    else
        rm -f -- "$3.new" 2>/dev/null || :
        fail "cannot write $3; run this as its owner or as root"
    fi
}
for script in "$files"/neardup--*.sql; do
    place 644 "$script" "$share/$(basename -- "$script")"
done
place 644 "$files/neardup.control" "$share/neardup.control"
place 755 "$files/neardup.so" "$library/neardup.so"
echo "Installed for $found. In each database that wants it: CREATE EXTENSION neardup;"
