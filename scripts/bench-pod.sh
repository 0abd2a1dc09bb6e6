#!/usr/bin/env bash
# What a proxy does within the limits of a pod: containers of edgewright, the floor and nginx with a CPU quota, bounds on
# memory and processes, and a load from outside of it. What it shows and what it doesn't: bench/README.md.
#
#   CPUS          quotas (default: "0.5 1 2")
#   CONNECTIONS   (default: "100 400 1000")
#   ONLY          contestants (default: "edgewright floor nginx nginx-auto")
#   ROUNDS        (default: 1)
#   DURATION      seconds of each of the two loads (default: 5)
#   RATE          requests/s of the second load for each CPU of the quota (default: 4000)
#   BINARIES      the folder of edgewright and edgewright-floor (default: target/release)
#   JSON          where the numbers of every round go (default: target/bench-pod.json)
set -euo pipefail
cd "$(dirname "$0")/.."

read -ra cpus <<<"${CPUS:-0.5 1 2}"
read -ra connections <<<"${CONNECTIONS:-100 400 1000}"
read -ra contestants <<<"${ONLY:-edgewright floor nginx nginx-auto}"
readonly rounds=${ROUNDS:-1} duration=${DURATION:-5} rate=${RATE:-4000}
readonly binaries=${BINARIES:-target/release} json=${JSON:-target/bench-pod.json}
readonly image=edgewright-bench-pod memory=256m pids=300
# Other runs on this machine have other names.
readonly network=edgewright-bench-pod-$$

fail() {
    echo "bench-pod: $*" >&2
    exit 1
}

docker version >/dev/null 2>&1 || fail "NOT RUN, no docker engine answers"
for binary in edgewright edgewright-floor; do
    [ -x "$binaries/$binary" ] || fail "there is no $binaries/$binary; \`make bench-pod\` builds it"
done
work=$(mktemp -d)
cleanup() {
    docker ps --all --quiet --filter "network=$network" | xargs --no-run-if-empty docker rm --force >/dev/null
    docker network rm "$network" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap cleanup EXIT

build() {
    local body
    body=$(printf 'abcdefghijklmnopqrstuvwxyz%.0s' {1..39} | head -c 1000)
    cp bench/pod/* "$work/"
    sed -i "s/\"BODY\"/\"$body\"/" "$work/backend.conf"
    strip -o "$work/edgewright" "$binaries/edgewright"
    strip -o "$work/edgewright-floor" "$binaries/edgewright-floor"
    scripts/bases.sh bench/pod/Dockerfile >&2
    # The host's network: its resolver may be one that only the host reaches.
    docker build --quiet --network host --tag "$image" "$work" >/dev/null
}

# run NAME OPTIONS.. -- COMMAND..: a container of the run's network.
run() {
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    docker run --detach --network "$network" --network-alias "$name" --name "$network-$name" \
        --read-only --tmpfs /tmp --cap-drop ALL --ulimit nofile=20000:20000 "${options[@]}" "$image" "${@:2}" >/dev/null
}

address_of() {
    docker inspect --format "{{(index .NetworkSettings.Networks \"$network\").IPAddress}}" "$network-$1"
}

# start_contestant NAME CPUS: $threads is how many it has afterwards.
start_contestant() {
    local limits=(--cpus "$2" --memory "$memory" --pids-limit "$pids")
    # What edgewright makes of the quota, so that the others don't have more or less.
    threads=$(awk -v cpus="$2" -v most="$(nproc)" \
        'BEGIN { n = int(cpus + 0.5); if (n < 1) n = 1; if (n > most) n = most; print n }')
    case $1 in
    edgewright)
        run proxy "${limits[@]}" -- edgewright run /bench/edgewright
        ;;
    floor)
        run proxy "${limits[@]}" -- edgewright-floor --listen 0.0.0.0:8080 \
            --upstream "$(address_of backend):8080" --threads "$threads"
        ;;
    nginx)
        run proxy "${limits[@]}" -- nginx -e stderr -c /bench/proxy.conf -g "worker_processes $threads;"
        ;;
    nginx-auto)
        # Its own choice: one for each CPU of the machine.
        threads=$(nproc)
        run proxy "${limits[@]}" -- nginx -e stderr -c /bench/proxy.conf -g "worker_processes auto;"
        ;;
    *) fail "no contestant \`$1\`: edgewright, floor, nginx, nginx-auto" ;;
    esac
    local deadline=$((SECONDS + 20))
    until [ "$(docker exec "$network-load" curl -s --max-time 2 http://proxy:8080/ | wc -c)" = 1000 ]; do
        [ $SECONDS -lt $deadline ] || {
            docker logs "$network-proxy" >&2
            fail "$1 does not pass on the body of 1000 bytes"
        }
        sleep 0.1
    done
    if [ "$1" = edgewright ]; then
        threads=$(docker logs "$network-proxy" 2>&1 | sed -n 's/.* cpu: .*threads=\([0-9]*\).*/\1/p')
    fi
}

# counters: periods, throttled ones, CPU time in µs, highest memory in bytes, tasks; of the contestant's control group,
# version 1 or 2. `tail` runs in it too, so one task is its own.
counters() {
    local group=/sys/fs/cgroup
    # Half of these files are those of the other version.
    { docker exec "$network-proxy" tail -n +1 $group/{cpu.stat,memory.peak,pids.current} \
        $group/{cpu/cpu.stat,cpuacct/cpuacct.usage,memory/memory.max_usage_in_bytes,pids/pids.current} 2>/dev/null || true; } |
        awk '/^==> / { file = $2; next }
            NF == 0 { next }
            $1 == "nr_periods" { periods = $2 }
            $1 == "nr_throttled" { throttled = $2 }
            $1 == "usage_usec" { time = $2 }
            file ~ /cpuacct.usage$/ { time = $1 / 1000 }
            file ~ /(memory.peak|max_usage_in_bytes)$/ { memory = $1 }
            file ~ /pids.current$/ { tasks = $1 - 1 }
            END { printf "%d %d %.0f %d %d\n", periods, throttled, time, memory, tasks }'
}

# load CONNECTIONS SECONDS [PAUSE]: what load.lua says.
load() {
    docker exec "$network-load" wrk -t 1 -c "$1" -d "$2s" -s /bench/load.lua http://proxy:8080/ -- ${3:+"$3"} |
        sed -n 's/^RESULT //p'
}

# turn ROUND NAME CPUS CONNECTIONS: a new process, its two loads, and a line of $work/rows.
turn() {
    local before between after busy paced wanted
    start_contestant "$2" "$3"
    load "$4" 1 >/dev/null
    wanted=$(awk -v rate="$rate" -v cpus="$3" 'BEGIN { printf "%d", rate * cpus }')
    before=$(counters)
    busy=$(load "$4" "$duration")
    between=$(counters)
    paced=$(load "$4" "$duration" "$(awk -v c="$4" -v rate="$wanted" 'BEGIN { printf "%.1f", c * 1000 / rate }')")
    after=$(counters)
    local state
    state=$(docker inspect --format '{{.State.Running}} {{.State.OOMKilled}}' "$network-proxy")
    docker rm --force "$network-proxy" >/dev/null
    [ "$state" = "true false" ] || fail "$2 did not survive $4 connections with $3 CPUs (running, out of memory: $state)"
    echo "$1 $2 $3 $4 $threads $before $busy $between $paced $after" >>"$work/rows"
}

# Of each round: 1 round, 2 name, 3 cpus, 4 connections, 5 threads, 6-10 counters before, 11-17 busy, 18-22 counters,
# 23-29 paced, 30-34 counters.
write_json() {
    awk -v about="$about" 'BEGIN { printf "{\"about\":\"%s\",\"turns\":[\n", about }
        { printf "%s  {\"round\":%d,\"name\":\"%s\",\"cpus\":%s,\"connections\":%d,\"threads\":%d,", (NR > 1 ? ",\n" : ""), $1, $2, $3, $4, $5
          printf "\"memory_peak_bytes\":%d,\"tasks\":%d,", $33, $34
          printf "\"busy\":{\"requests\":%d,\"duration_us\":%d,\"errors\":%d,\"p50_us\":%d,\"p99_us\":%d,\"p999_us\":%d,\"max_us\":%d,\"periods\":%d,\"throttled\":%d,\"cpu_us\":%.0f},", $11, $12, $13, $14, $15, $16, $17, $18 - $6, $19 - $7, $20 - $8
          printf "\"paced\":{\"requests\":%d,\"duration_us\":%d,\"errors\":%d,\"p50_us\":%d,\"p99_us\":%d,\"p999_us\":%d,\"max_us\":%d,\"periods\":%d,\"throttled\":%d,\"cpu_us\":%.0f}}", $23, $24, $25, $26, $27, $28, $29, $30 - $18, $31 - $19, $32 - $20 }
        END { print "\n]}" }' "$work/rows" >"$json"
}

# Medians over the rounds; errors are added up.
write_table() {
    awk -v rate="$rate" 'function median(list, n, i, j, t) {
            n = split(list, v, " ")
            for (i = 2; i <= n; i++) { t = v[i] + 0; for (j = i - 1; j > 0 && v[j] + 0 > t; j--) v[j + 1] = v[j]; v[j + 1] = t }
            return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        }
        function share(part, all) { return all > 0 ? part * 100 / all : 0 }
        { key = $3 " " $4 " " $2
          if (!(key in threads)) order[++rows] = key
          threads[key] = $5
          rps[key] = rps[key] " " $11 * 1e6 / $12
          cost[key] = cost[key] " " ($20 - $8) / ($11 > 0 ? $11 : 1)
          p99[key] = p99[key] " " $15 / 1000
          busy[key] = busy[key] " " share($19 - $7, $18 - $6)
          got[key] = got[key] " " $23 * 1e6 / $24
          half[key] = half[key] " " $26 / 1000
          late[key] = late[key] " " $27 / 1000
          held[key] = held[key] " " share($31 - $19, $30 - $18)
          errors[key] += $13 + $25
          memory[key] = memory[key] " " $33 / 1048576
          tasks[key] = $34 }
        END {
            print "| CPUs | connections | | threads | requests/s | CPU µs/request | p99 ms | throttled | paced to | p50 ms | p99 ms | throttled | errors | MiB | tasks |"
            print "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
            for (i = 1; i <= rows; i++) {
                key = order[i]; split(key, k, " ")
                printf "| %s | %s | `%s` | %d | %.0f | %.1f | %.1f | %.0f %% | %.0f/s | %.1f | %.1f | %.0f %% | %d | %.0f | %d |\n", k[1], k[2], k[3], threads[key], median(rps[key]), median(cost[key]), median(p99[key]), median(busy[key]), median(got[key]), median(half[key]), median(late[key]), median(held[key]), errors[key], median(memory[key]), tasks[key]
            }
        }' <(sort -s -n -k 3,3 -k 4,4 "$work/rows")
}

about="Containers with a CPU quota, $memory of memory and $pids processes at most, on $(nproc) CPUs that backend and load\
 share with them; $rounds round(s) of $duration s for each load; $(date -u +%F), Linux $(uname -r), docker\
 $(docker version --format '{{.Server.Version}}'), $("$binaries/edgewright" --version); load average before\
 $(cut -d ' ' -f 1 /proc/loadavg)."
mkdir -p "$(dirname "$json")"
: >"$work/rows"
build
docker network create "$network" >/dev/null
run backend -- nginx -e stderr -c /bench/backend.conf
run load -- sleep infinity
for ((round = 1; round <= rounds; round++)); do
    for quota in "${cpus[@]}"; do
        for number in "${connections[@]}"; do
            for name in "${contestants[@]}"; do
                echo "bench-pod: round $round of $rounds, $quota CPUs, $number connections, $name" >&2
                turn "$round" "$name" "$quota" "$number"
            done
        done
    done
    # Another one begins.
    contestants=("${contestants[@]:1}" "${contestants[0]}")
done
write_json

echo "$about"
echo
write_table
echo
echo "bench-pod: the numbers of every round are in $json" >&2
if awk '$2 == "edgewright" && $13 + $25 > 0 { bad = 1 } END { exit !bad }' "$work/rows"; then
    fail "edgewright had errors: no result"
fi
