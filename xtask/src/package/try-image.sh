#!/bin/sh
# Builds the server image with neardup's Debian package, starts its server by the image's entry
# point, uses the extension there and deletes the image. BASE is the image to which the package is
# added, by default PostgreSQL's official image. Requires root and buildah, but no container engine.
#
#   sh xtask/src/package/try-image.sh PACKAGE [BASE]
set -eu

[ $# -ge 1 ] || { echo "usage: try-image.sh PACKAGE [BASE]" >&2; exit 2; }
package=$1
here=$(dirname "$0")
major=$(basename "$package" | sed 's/^postgresql-\([0-9]*\)-.*/\1/')
image=localhost/neardup-trial:$major
# Only this isolation needs no container runtime. It has the network and the processes of the host.
export BUILDAH_ISOLATION=chroot

folder=$(mktemp -d)
container=
server=
finish() {
    [ -z "$server" ] || stop || kill "$server"
    [ -z "$container" ] || buildah rm "$container" >/dev/null
    buildah rmi "$image" >/dev/null || :
    rm -rf "$folder"
}
trap finish EXIT
within() { buildah run "$container" -- "$@"; }
stop() { within gosu postgres pg_ctl -m fast -w stop && wait "$server"; }

mkdir "$folder/context"
cp "$package" "$folder/context/"
buildah build --file "$here/images/server.Dockerfile" --build-arg "PG=$major" \
    ${2:+--build-arg "BASE=$2"} --tag "$image" "$folder/context"

container=$(buildah from "$image")
buildah copy --quiet "$container" "$here/try.sql" /tmp/try.sql
entry=$(buildah inspect --format '{{index .OCIv1.Config.Entrypoint 0}}' "$container")
buildah run --env POSTGRES_HOST_AUTH_METHOD=trust "$container" -- \
    "$entry" postgres -c listen_addresses= >"$folder/log" 2>&1 &
server=$!
# The entry point first starts another server, which creates the database.
seconds=0
until grep -q 'init process complete' "$folder/log" && within pg_isready -q; do
    seconds=$((seconds + 1))
    if [ "$seconds" -gt 120 ] || ! kill -0 "$server" 2>/dev/null; then
        cat "$folder/log" >&2
        exit 1
    fi
    sleep 1
done

found=$(within psql -X -U postgres -tA -f /tmp/try.sql postgres)
echo "$found"
[ "$(echo "$found" | tail -n 1)" = "7 1001" ] || {
    echo "the index did not find the two equal texts" >&2
    exit 1
}
stop
server=
echo "The image can be built, started and used."
