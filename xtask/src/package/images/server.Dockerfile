# Server image: PostgreSQL's official image with neardup's Debian package. The build context is a
# folder with this package. It may also contain the packages for other versions and processors.
#
#   docker build --file server.Dockerfile --build-arg PG=15 FOLDER
ARG PG=18
ARG BASE=docker.io/library/postgres:${PG}-bookworm
FROM ${BASE}
ARG PG
LABEL org.opencontainers.image.title="neardup" \
      org.opencontainers.image.description="PostgreSQL ${PG} with neardup"
# /mnt exists in the base image, so that the mount leaves no folder behind.
RUN --mount=type=bind,target=/mnt \
    dpkg --install /mnt/postgresql-${PG}-neardup_*_$(dpkg --print-architecture).deb
