#!/usr/bin/env bash
# Builds edgewright once more, with a profile of itself at work: the compiler then knows which ways are taken often. What
# that brings stands in bench/README.md.
#
#   scripts/pgo.sh    → target/pgo/edgewright
#   SECONDS_EACH      of each load (default: 4)
#
# Three steps: a build that counts; a load like that of the benchmark, and what that leaves out (TLS, HTTP/2, bodies,
# rewriting); the build that is meant for use. Two whole builds, so some twenty minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
# Debian keeps nginx where the PATH of an ordinary user doesn't look.
PATH=$PATH:/usr/sbin:/sbin

readonly target=${CARGO_TARGET_DIR:-$PWD/target}
readonly seconds=${SECONDS_EACH:-4}
readonly bench=$target/release/edgewright-bench
host=$(rustc -vV | sed -n 's/^host: //p')
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
readonly host llvm

fail() {
    echo "pgo: $*" >&2
    exit 1
}

# The format of profiles changes with LLVM, so it has to be that of the compiler.
profdata() {
    local tool
    for tool in "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" "$(command -v "llvm-profdata-$llvm" || true)"; do
        if [ -x "$tool" ]; then
            "$tool" "$@"
            return
        fi
    done
    fail "there is no llvm-profdata of LLVM $llvm: rustup component add llvm-tools, or apt-get install llvm-$llvm"
}

# build FLAGS OPTIONS..: with a target that is named, the flags are not those of build scripts and macros.
build() {
    local flags=$1
    shift
    RUSTFLAGS="${RUSTFLAGS:-} $flags" cargo build --locked --release -p edgewright --bin edgewright --target "$host" "$@"
}

profdata --version >/dev/null
[ -x "$bench" ] || fail "there is no $bench: \`make release-pgo\` builds it"

work=$(mktemp -d)
pids=()
cleanup() {
    if [ "${#pids[@]}" -gt 0 ]; then
        kill "${pids[@]}" 2>/dev/null || true
        wait "${pids[@]}" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap cleanup EXIT
mkdir "$work/edge"
# Always the same folder, since its name is a flag of the compiler: what has been built with it lasts.
readonly profiles=$target/pgo-profiles
rm -rf "$profiles"
mkdir -p "$profiles"
# A file for each process, which it writes when it ends.
export LLVM_PROFILE_FILE=$profiles/%p.profraw

echo "pgo: a build that counts" >&2
# In the same profile, although it need not be quick: cargo makes the names of functions depend on it, and what was counted is found by these.
build "-Cprofile-generate=$profiles" --target-dir "$target/pgo-counting"
readonly counting=$target/pgo-counting/$host/release/edgewright

echo "pgo: the load of the benchmark" >&2
"$bench" run --edgewright "$counting" --rounds 1 --seconds "$seconds" --rate off --json "$work/bench.json" \
    --only edgewright-bare --only edgewright --only edgewright-routing --only edgewright-auth --only edgewright-script >&2

echo "pgo: TLS, HTTP/2, bodies, rewriting" >&2
# free_ports NUMBER: ports that nobody has now.
free_ports() {
    python3 - "$1" <<'PYTHON'
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))
PYTHON
}
read -r upstream plain tls <<<"$(free_ports 3)"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout "$work/edge/key.pem" -out "$work/edge/cert.pem" 2>/dev/null
head -c 65536 /dev/zero | tr '\0' x >"$work/64k"
cat >"$work/nginx.conf" <<CONF
daemon off; master_process off; pid $work/nginx.pid; error_log $work/nginx.log;
events { worker_connections 1024; }
http {
    access_log off; keepalive_requests 1000000; client_max_body_size 1m;
    client_body_temp_path $work; proxy_temp_path $work; fastcgi_temp_path $work; uwsgi_temp_path $work; scgi_temp_path $work;
    server {
        listen 127.0.0.1:$upstream;
        location / { return 200 '{"items": [1, 2, 3], "next": "/items?page=2"}'; }
        location = /64k { root $work; error_page 405 =200 /64k; }
    }
}
CONF
cat >"$work/edge/edgewright.toml" <<CONF
[[listeners]]
address = "127.0.0.1:$plain"
[[listeners]]
address = "127.0.0.1:$tls"
[listeners.tls]
certificates = [{ cert = "cert.pem", key = "key.pem" }]
[pools.web]
targets = ["127.0.0.1:$upstream"]
[admin]
address = "off"
[health]
address = "off"
CONF
cat >"$work/edge/routes.rhai" <<'RHAI'
route("/{*rest}").to("web");
route("/answer").respond(200, "ok\n");
route("/old/{*rest}").redirect(308, "/{rest}");
route("/v2/{*rest}").rewrite("/{rest}").set_header("x-version", "2")
    .set_response_header("x-frame-options", "deny").timeout("5s").to("web");
let shop = site("shop.example.com");
shop.route("/{*rest}").on_request(|req| {
    if req.cookie("session") == () { req.set_header("x-new", "1"); }
    req.set("seen", req.path);
}).on_response(|req, res| res.set_header("x-seen", req.get("seen"))).to("web");
RHAI
cat >"$work/post.lua" <<'LUA'
wrk.method = "POST"
wrk.body = string.rep("x", 4000)
LUA
nginx -c "$work/nginx.conf" -p "$work" 2>/dev/null &
pids+=($!)
"$counting" run "$work/edge" 2>"$work/edge.log" &
edge=$!
pids+=("$edge")
for _ in $(seq 300); do
    curl -fs -o "$work/answer" "http://127.0.0.1:$plain/answer" && break
    kill -0 "$edge" 2>/dev/null || fail "edgewright does not start: $(cat "$work/edge.log")"
    sleep 0.1
done

# load WRK-OPTIONS.. URL: an error answer is none of what is trained for.
load() {
    local said
    said=$(wrk -t 1 -c 32 -d "${seconds}s" "$@")
    ! grep -E "Non-2xx|Socket errors" <<<"$said" || fail "the load had errors: $*"
}
readonly browser=(-H "User-Agent: Mozilla/5.0 (X11; Linux x86_64)" -H "Accept: text/html,*/*;q=0.8" -H "Accept-Language: en"
    -H "Accept-Encoding: gzip, br" -H "Cookie: session=6f1d0c2b9a; theme=dark" -H "Cache-Control: no-cache")
load "${browser[@]}" "http://127.0.0.1:$plain/items?page=1"
load "${browser[@]}" "http://127.0.0.1:$plain/v2/items"
load "${browser[@]}" -H "Host: shop.example.com" "http://127.0.0.1:$plain/cart"
load -s "$work/post.lua" "http://127.0.0.1:$plain/items"
load "http://127.0.0.1:$plain/64k"
load "http://127.0.0.1:$plain/answer"
load "${browser[@]}" "https://localhost:$tls/items"
load -H "Connection: close" "https://localhost:$tls/items"
for _ in 1 2 3 4; do
    curl -fsS --no-progress-meter --http2 --cacert "$work/edge/cert.pem" --parallel --parallel-max 50 "${browser[@]}" \
        -o /dev/null "https://localhost:$tls/items?page=[1-1500]"
done
kill -TERM "$edge"
wait "$edge" || fail "edgewright ended badly: $(cat "$work/edge.log")"

profdata merge -o "$work/edgewright.profdata" "$profiles"/*.profraw

echo "pgo: the build for use" >&2
# Cargo doesn't see that a profile is another one.
rm -rf "$target/pgo-build"
build "-Cprofile-use=$work/edgewright.profdata" --target-dir "$target/pgo-build"
readonly built=$target/pgo-build/$host/release/edgewright
# The compiler takes a profile that fits nothing without a word.
profdata show --all-functions "$work/edgewright.profdata" | sed -n 's/^  \(_[^ ;]*\):$/\1/p' | sort >"$work/counted"
nm --defined-only --format=posix "$built" | cut -d ' ' -f 1 | sort >"$work/there"
fitting=$(comm -12 "$work/counted" "$work/there" | wc -l)
[ "$fitting" -gt 1000 ] || fail "the profile fits only $fitting functions of $built"
mkdir -p "$target/pgo"
cp "$built" "$target/pgo/edgewright"
echo "pgo: $target/pgo/edgewright" >&2
