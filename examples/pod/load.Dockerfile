# The load: wrk, as Debian has it.
FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends wrk \
    && rm -rf /var/lib/apt/lists/*
USER 65532:65532
ENTRYPOINT ["wrk"]
