#!/usr/bin/env bash
# The example examples/pod: a gateway with the limits of a small pod, two containers behind it, and a load.
#
#   scripts/pod.sh            starts it, loads it for 10 s, says what that did, and leaves it running
#   scripts/pod.sh down       ends it
#   scripts/pod.sh test       tries it in a copy of its own, and ends that
#
#   IMAGE     the image of edgewright (default: edgewright); built when it isn't there
#   PORT      where the gateway is reached on this machine (default: 8080)
#   COMPOSE   `docker compose` or `docker-compose`, whichever is there; `none` for plain `docker run`
set -euo pipefail
cd "$(dirname "$0")/.."

readonly image=${IMAGE:-edgewright}
readonly load_image=edgewright-load
folder=$PWD/examples/pod
project=edgewright-pod
# Compose reads them.
export IMAGE=$image PORT=${PORT-8080}

fail() {
    echo "pod: $*" >&2
    exit 1
}

docker version >/dev/null 2>&1 || fail "NOT RUN, no docker engine answers"

find_compose() {
    if docker compose version >/dev/null 2>&1; then
        echo docker compose
    elif command -v docker-compose >/dev/null; then
        echo docker-compose
    else
        echo none
    fi
}
read -ra compose <<<"${COMPOSE:-$(find_compose)}"

has_compose() {
    [ "${compose[0]}" != none ]
}

compose() {
    "${compose[@]}" --project-name "$project" --project-directory "$folder" --file "$folder/compose.yaml" "$@"
}

# containers SERVICE: the ids of its running containers. Compose sets these labels, and so does `start`.
containers() {
    docker ps --quiet --filter "label=com.docker.compose.project=$project" \
        --filter "label=com.docker.compose.service=$1"
}

# start SERVICE OPTIONS..: what compose.yaml says, for a machine without compose.
start() {
    local service=$1
    shift
    docker run --detach --network "$project" --network-alias "$service" \
        --label "com.docker.compose.project=$project" --label "com.docker.compose.service=$service" \
        --read-only --cap-drop ALL "$@" "$image" >/dev/null
}

start_backend() {
    start backend --volume "$folder/backend.rhai:/etc/edgewright/routes.rhai:ro"
}

start_gateway() {
    start gateway --publish "127.0.0.1:$PORT:8080" --volume "$folder:/etc/edgewright:ro" \
        --cpus 0.5 --memory 256m --pids-limit 300 --security-opt no-new-privileges:true
}

up() {
    docker image inspect "$image" >/dev/null 2>&1 || scripts/image.sh
    docker image inspect "$load_image" >/dev/null 2>&1 || build_load
    if has_compose; then
        compose up --detach
    elif [ -z "$(containers gateway)" ]; then
        docker network create --label "com.docker.compose.project=$project" "$project" >/dev/null
        start_backend
        start_backend
        start_gateway
    fi
}

build_load() {
    # The host's network: its resolver may be one that only the host reaches.
    docker build --network host --tag "$load_image" --file "$folder/load.Dockerfile" "$folder"
}

down() {
    local label="label=com.docker.compose.project=$project"
    docker ps --all --quiet --filter "$label" | xargs --no-run-if-empty docker rm --force >/dev/null
    docker network ls --quiet --filter "$label" | xargs --no-run-if-empty docker network rm >/dev/null
}

# load SECONDS: wrk's own words.
load() {
    local arguments=(-t1 -c100 "-d${1}s" --latency http://gateway:8080/)
    if has_compose; then
        compose run --rm -T load "${arguments[@]}" 2>/dev/null
    else
        docker run --rm --network "$project" "$load_image" "${arguments[@]}"
    fi
}

# ask PATH: status and body from the gateway. Its address is the one on this machine.
ask() {
    local address
    address=$(docker port "$(containers gateway)" 8080/tcp | head -n 1)
    curl --silent --show-error --max-time 5 --write-out '%{http_code}\n' "http://$address$1" 2>/dev/null
}

# within SECONDS COMMAND..: repeats it until it succeeds.
within() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || return 1
        sleep 0.2
    done
}

answers() { # PATH TEXT
    [[ $(ask "$1") == *"$2"* ]]
}

# Names of containers that have answered 20 requests, each once.
answering() {
    for _ in $(seq 20); do
        ask /who | head -n 1
    done | sort -u
}

answering_are() { # NUMBER
    [ "$(answering | wc -l)" = "$1" ]
}

# metric NAME: a value without labels.
metric() { # empty where the network of containers can't be reached from here
    local address
    address=$(docker inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$(containers gateway)")
    { curl --silent --max-time 5 "http://$address:9181/metrics" || true; } | awk -v name="$1" '$1 == name { print $2 }'
}

begin() {
    up
    within 30 answers / 200 || {
        docker logs "$(containers gateway)" >&2 || true
        fail "the gateway does not answer"
    }
}

show() {
    begin
    echo "pod: $(docker logs "$(containers gateway)" 2>&1 | grep -o 'cpu: .*' | head -n 1)"
    echo "pod: 100 connections for 10 s"
    load 10
    local throttled
    throttled=$(metric edgewright_cpu_throttled_periods_total)
    [ -z "$throttled" ] ||
        echo "pod: throttled in $throttled of $(metric edgewright_cpu_periods_total) periods of the CPU quota"
    cat <<END

It is running. Try:
    curl -i http://127.0.0.1:$PORT/            # which container has answered
    \$EDITOR examples/pod/routes.rhai           # live within a second
    scripts/pod.sh down                        # ends it
END
}

ok() {
    passed=$((passed + 1))
    echo "ok: $*"
}

try() {
    passed=0
    # A copy, since its program is changed.
    work=$(mktemp -d)
    cp -R "$folder" "$work/pod"
    chmod -R a+rX "$work"
    folder=$work/pod
    project=edgewright-pod-test-$$
    PORT=
    trap 'down; rm -rf "$work"' EXIT
    if has_compose; then echo "pod: with ${compose[*]}"; else echo "pod: with docker run"; fi

    begin
    ok "the gateway answers through Docker's name server"
    # All of it first: a log that nobody reads to its end is a failure.
    local log
    log=$(docker logs "$(containers gateway)" 2>&1)
    grep -q 'quota=0.50 threads=1$' <<<"$log" || fail "the quota is not seen: $(grep cpu: <<<"$log")"
    ok "half a CPU makes one thread"
    within 20 answering_are 2 || fail "not two containers answer: $(answering)"
    ok "both containers behind it answer"

    if has_compose; then
        compose up --detach --no-recreate --scale backend=3 >/dev/null 2>&1
    else
        start_backend
    fi
    within 30 answering_are 3 || fail "a third container is not found: $(answering)"
    ok "a third one is found by its name"
    docker rm --force "$(containers backend | head -n 1)" >/dev/null
    for _ in $(seq 50); do
        answers / 200 || fail "a request failed after a container had gone: $(ask /)"
    done
    ok "one that goes takes no request with it"

    sed 's/"hello /"live /' "$folder/routes.rhai" >"$work/routes.rhai"
    chmod a+r "$work/routes.rhai"
    mv "$work/routes.rhai" "$folder/routes.rhai"
    within 15 answers /hello/Ada "live Ada" || fail "a change does not go live: $(ask /hello/Ada)"
    ok "a saved change goes live"

    local said
    said=$(load 3)
    [[ $said == *"requests in"* ]] || fail "there was no load: $said"
    [[ $said != *"Non-2xx"* && $said != *"Socket errors"* ]] || fail "the load had errors: $said"
    ok "$(grep -o '[0-9]* requests in.*' <<<"$said") without an error"
    [ "$(docker inspect --format '{{.State.OOMKilled}} {{.RestartCount}}' "$(containers gateway)")" = "false 0" ] ||
        fail "the gateway ran out of memory"
    ok "within 256 MiB"
    echo
    echo "pod checks: $passed passed, 0 failed"
}

case ${1:-up} in
up) show ;;
down) down ;;
test) try ;;
*)
    echo "pod: unknown task \`$1\`: up, down or test" >&2
    exit 2
    ;;
esac
