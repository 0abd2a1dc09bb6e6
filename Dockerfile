# The image of edgewright: one binary on a minimal Debian, no shell needed, any user id, a root file
# system that may be read-only. Needs nothing of BuildKit.
#
#   docker build -t edgewright .
#   docker run -p 8080:8080 edgewright

FROM rust:1-bookworm AS build
# Pingora's zlib-ng is built with cmake.
RUN command -v cmake >/dev/null || { apt-get update \
    && apt-get install -y --no-install-recommends cmake \
    && rm -rf /var/lib/apt/lists/*; }
WORKDIR /src

# Dependencies are downloaded in a layer of their own, which lasts until a manifest changes. Cargo
# wants a file for each library and benchmark that a manifest names before it reads on.
COPY Cargo.toml Cargo.lock ./
COPY core/Cargo.toml core/
COPY script-api/Cargo.toml script-api/
COPY bench/Cargo.toml bench/
RUN mkdir core/src script-api/src bench/src bench/benches \
    && touch core/src/lib.rs script-api/src/lib.rs bench/src/lib.rs bench/benches/jobs.rs \
    && cargo fetch --locked

# `release` is what is measured and meant for use; `release-fast` links in a fraction of the time.
ARG PROFILE=release
COPY core core
COPY script-api script-api
COPY bench bench
RUN cargo build --locked --offline --profile "$PROFILE" -p edgewright --bin edgewright \
    && strip -o /edgewright "target/$PROFILE/edgewright"

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="edgewright" \
      org.opencontainers.image.description="A reverse proxy whose routing, auth and rewriting are one checked, hot-reloaded Rhai program" \
      org.opencontainers.image.source="https://github.com/edgewright/edgewright" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=build /edgewright /usr/local/bin/edgewright
COPY deploy/image /etc/edgewright
# Where it listens when the configuration doesn't say: the loopback of a container is no use.
ENV EDGEWRIGHT_LISTEN=0.0.0.0:8080 EDGEWRIGHT_HEALTH=0.0.0.0:9181
# A number, so that Kubernetes can see that it isn't root (runAsNonRoot).
USER 65532:65532
# Traffic; health, readiness and metrics. The admin listener stays on the container's loopback.
EXPOSE 8080 9181
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/usr/local/bin/edgewright", "health"]
ENTRYPOINT ["/usr/local/bin/edgewright"]
CMD ["run", "/etc/edgewright"]
