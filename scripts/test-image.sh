#!/usr/bin/env bash
# Tries the container image: as it is, and the way it runs in a pod, with a read-only root file
# system, no capabilities, a user id of its own, and a mounted folder that changes as a ConfigMap
# does.
#
#   IMAGE   the image to try (default: edgewright)
set -euo pipefail

readonly image=${IMAGE:-edgewright}
folder=$(mktemp -d)
containers=()
passed=0

cleanup() {
    [ ${#containers[@]} -eq 0 ] || docker rm -f "${containers[@]}" >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap cleanup EXIT

fail() {
    echo "FAILED: $*" >&2
    for container in "${containers[@]}"; do
        docker logs "$container" 2>&1 | tail -n 20 | sed "s/^/  ${container:0:6}: /" >&2
    done
    exit 1
}

ok() {
    passed=$((passed + 1))
    echo "ok: $*"
}

# within SECONDS COMMAND..: repeats it until it succeeds.
within() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || return 1
        sleep 0.1
    done
}

# start OPTIONS.. [-- ARGUMENTS..]: the container's id is in $container afterwards.
start() {
    local options=() arguments=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    [ $# -eq 0 ] || arguments=("${@:2}")
    container=$(docker run -d -p 127.0.0.1::8080 -p 127.0.0.1::9181 --health-interval 1s \
        "${options[@]}" "$image" "${arguments[@]}")
    containers+=("$container")
}

# The address on this machine of a port of the container.
address() {
    docker port "$container" "$1/tcp" | head -n 1
}

answers() { # PORT PATH TEXT
    [[ $(curl -sS --max-time 2 "http://$(address "$1")$2" 2>/dev/null) == *"$3"* ]]
}

state() {
    docker inspect -f "{{.State.$1}}" "$container"
}

is_healthy() {
    [ "$(state Health.Status)" = healthy ]
}

# stops_at_once: SIGTERM, exit code 0, well within the drain time.
stops_at_once() {
    local begun=$SECONDS
    docker stop -t 20 "$container" >/dev/null
    [ $((SECONDS - begun)) -le 5 ] || fail "it took $((SECONDS - begun)) s to stop"
    [ "$(state ExitCode)" = 0 ] || fail "it ended with exit code $(state ExitCode)"
    ok "SIGTERM ends it at once, with exit code 0"
}

# publish TEXT: routes.rhai becomes TEXT, in the steps of the kubelet's atomic writer.
publish() {
    local new
    new=$(mktemp -d "$folder/..XXXXXXXX")
    chmod 755 "$new"
    cp "$folder/edgewright.toml.new" "$new/edgewright.toml"
    printf '%s\n' "$1" >"$new/routes.rhai"
    chmod 644 "$new"/*
    local old
    old=$(readlink "$folder/..data" || true)
    ln -s "$(basename "$new")" "$folder/..data_tmp"
    mv -T "$folder/..data_tmp" "$folder/..data"
    ln -sfn ..data/routes.rhai "$folder/routes.rhai"
    ln -sfn ..data/edgewright.toml "$folder/edgewright.toml"
    [ -z "$old" ] || rm -rf "${folder:?}/$old"
}

echo "image: $image, $(docker image inspect -f '{{.Size}}' "$image" | numfmt --to=si)B"
user=$(docker image inspect -f '{{.Config.User}}' "$image")
[[ $user =~ ^[1-9][0-9]*(:[0-9]+)?$ ]] || fail "the user is \`$user\`, not a number above 0"
ok "runs as user $user"

start --read-only --cap-drop ALL
within 30 answers 8080 / "edgewright is running" || fail "the image as it is does not answer"
ok "answers as it is"
stops_at_once

chmod 755 "$folder"
cat >"$folder/edgewright.toml.new" <<'END'
[[listeners]]
address = "0.0.0.0:8080"
[health]
address = "0.0.0.0:9181"
END
publish 'route("/{*rest}").respond(200, "first\n");'
start --read-only --cap-drop ALL --security-opt no-new-privileges --user 12345:12345 \
    -v "$folder:/etc/edgewright:ro"
within 30 answers 8080 /x first || fail "a mounted program is not served"
ok "serves a mounted program: read-only root, no capabilities, another user id"
within 30 is_healthy || fail "it does not become healthy: $(state Health.Status)"
ok "docker says that it is healthy"
answers 9181 /readyz ready || fail "it is not ready on the health port"
ok "ready on the health port"

publish 'route("/{*rest}").respond(200, "second\n");'
within 15 answers 8080 /x second || fail "a change does not go live"
ok "a change of the mounted folder goes live"
publish 'route("/{*rest}").to("nowhere");'
refused() { grep -q 'reload refused.*routes.rhai:1:' <<<"$(docker logs "$container" 2>&1)"; }
within 15 refused || fail "a broken program is not refused"
answers 8080 /x second || fail "a broken program took effect"
ok "a broken program is refused with its place, the last good one serves on"
publish 'route("/{*rest}").respond(200, "third\n");'
within 15 answers 8080 /x third || fail "a repaired program does not go live"
ok "and a repaired one goes live"
stops_at_once

# A folder that holds a program and nothing else: the image says where to listen.
single=$folder/single
mkdir "$single"
echo 'route("/{*rest}").respond(200, "single\n");' >"$single/routes.rhai"
start --read-only -v "$single:/etc/edgewright:ro" --
within 30 answers 8080 /x single || fail "a routes.rhai alone is not served"
ok "a routes.rhai alone is served"

start -v "$single:/etc/edgewright:ro" -- check /etc/edgewright
within 10 test "$(docker wait "$container")" = 0 || fail "check does not end with 0"
ok "check runs in the image"

echo
echo "image checks: $passed passed, 0 failed"
