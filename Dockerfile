# Parlor in a small Debian image: one executable, an unprivileged user, data in the volume /data. It runs as any user; if
# started as root, as the one of PUID and PGID.
#
#   docker build -t parlor .                                          builds the executable, too
#   docker build -t parlor --build-arg EXECUTABLE=given .             uses the one that deno task build made in dist/
#   docker build -t parlor --build-arg YT_DLP=2026.10.26 .            with yt-dlp and ffmpeg, for voice samples from websites
#   docker build -t parlor --build-arg TAILSCALED=1.102.5 .           with tailscaled, for the tailnet node

# The stage with the executable: built or given.
ARG EXECUTABLE=built
ARG BASE=debian:bookworm-slim

FROM denoland/deno:debian-2.9.6 AS built
WORKDIR /src
COPY . .
RUN deno task build && cp dist/parlor dist/licences.txt /

FROM ${BASE} AS given
# Path of the executable in the build context; its license notices are next to it.
ARG GIVEN=dist/parlor
COPY ${GIVEN} /parlor
COPY dist/licences.txt /licences.txt

FROM ${EXECUTABLE} AS executable

FROM ${BASE}
# Version of yt-dlp on PyPI; empty for none.
ARG YT_DLP=
# Version of tailscaled; empty for none.
ARG TAILSCALED=
ARG TARGETARCH
RUN set -eu; \
    if [ -n "$YT_DLP$TAILSCALED" ]; then apt-get update; fi; \
    if [ -n "$YT_DLP" ]; then \
      apt-get install --yes --no-install-recommends ffmpeg python3-pip; \
      python3 -m pip install --no-cache-dir --break-system-packages "yt-dlp==$YT_DLP"; \
    fi; \
    if [ -n "$TAILSCALED" ]; then \
      apt-get install --yes --no-install-recommends ca-certificates curl; \
      archive="tailscale_${TAILSCALED}_${TARGETARCH:-$(dpkg --print-architecture)}"; \
      cd /tmp; \
      curl --fail --silent --show-error --location --remote-name "https://pkgs.tailscale.com/stable/$archive.tgz"; \
      curl --fail --silent --show-error --location "https://pkgs.tailscale.com/stable/$archive.tgz.sha256" >sum; \
      echo "$(cat sum)  $archive.tgz" | sha256sum --check --quiet; \
      tar -xzf "$archive.tgz" && install "$archive/tailscaled" /usr/local/bin/ && rm -r "$archive" "$archive.tgz" sum; \
      apt-get purge --yes --auto-remove curl; \
    fi; \
    rm -rf /var/lib/apt/lists/*; \
    groupadd --system --gid 10001 parlor; \
    useradd --system --uid 10001 --gid parlor --no-create-home --home-dir /data --shell /usr/sbin/nologin parlor; \
    install --directory --owner=parlor --group=parlor --mode=0777 /data
# A new volume gets the mode of /data, so any user can write to it. The server makes it 0700 if it's the owner.
COPY --from=executable --chmod=0755 /parlor /usr/local/lib/parlor/parlor
COPY --chmod=0755 packaging/container/parlor.sh /usr/local/bin/parlor
COPY --from=executable --chmod=0644 /licences.txt /usr/share/doc/parlor/licences.txt

# In a container, every client has the address of the bridge, and a loopback peer can be anyone. So no address is trusted,
# and the first passkey requires the code from the log.
ENV HOME=/data \
    PARLOR_DATA_DIR=/data \
    PARLOR_HOST=0.0.0.0 \
    PARLOR_ALLOWED_HOSTS=localhost,127.0.0.1 \
    PARLOR_PAIRING=code \
    PARLOR_LOOPBACK_AUTH_BYPASS=false
USER parlor
VOLUME /data
EXPOSE 8787
STOPSIGNAL SIGTERM
# Bash's /dev/tcp, because the image has no HTTP client and starting the program costs more. It can't speak TLS: then the
# program asks itself.
HEALTHCHECK --interval=10s --timeout=10s --start-period=20s --retries=3 CMD ["bash", "-c", \
  "exec 3<>/dev/tcp/127.0.0.1/${PARLOR_PORT:-8787} && printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 204' || exec parlor health"]
ENTRYPOINT ["parlor"]
