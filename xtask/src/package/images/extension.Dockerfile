# Extension image: only the files of neardup, in the folders that CloudNativePG expects. PostgreSQL
# 18 or later loads the extension from the mounted image. The build context is the unpacked archive
# (.tar.gz) for this version of the server. DISTRO is the Debian release that the archive was built
# on.
#
#   docker build --file extension.Dockerfile --build-arg VERSION=0.1.0 FOLDER
FROM scratch
ARG VERSION
ARG PG=18
ARG DISTRO=bookworm
ARG LICENCES=PostgreSQL
LABEL org.opencontainers.image.title="neardup" \
      org.opencontainers.image.description="neardup for PostgreSQL ${PG}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="${LICENCES}" \
      org.opencontainers.image.base.name="scratch" \
      io.cloudnativepg.image.base.name="ghcr.io/cloudnative-pg/postgresql:${PG}-minimal-${DISTRO}" \
      io.cloudnativepg.image.base.os="${DISTRO}" \
      io.cloudnativepg.image.base.pgmajor="${PG}" \
      io.cloudnativepg.image.sql.version="${VERSION}"
COPY neardup.so /lib/
COPY neardup.control neardup--*.sql /share/extension/
COPY LICENSE COPYRIGHT /licenses/
