#!/bin/sh
# Makes the certificates of the tests anew: an authority of their own, and a server's certificate for
# api.test and 127.0.0.1. They are worth nothing outside the tests.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cat > "$work/ca.cnf" <<END
[ca]
default_ca = tests
[tests]
database = $work/index
serial = $work/serial
new_certs_dir = $work
default_md = sha256
policy = any
[any]
commonName = supplied
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[server]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:api.test, IP:127.0.0.1
END
touch "$work/index"
echo 01 > "$work/serial"
request() {
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc \
        -keyout "$1" -out "$work/request.pem" -subj "/CN=$2"
}
sign() {
    openssl ca -batch -notext -config "$work/ca.cnf" -in "$work/request.pem" \
        -startdate 20200101000000Z -enddate 21200101000000Z -keyfile "$work/authority.key" "$@"
}
request "$work/authority.key" "edgewright tests"
sign -selfsign -extensions authority -out authority.pem
request server.key server
sign -cert authority.pem -extensions server -out server.pem
