#!/bin/sh
# Makes the certificates of this example anew: an authority, a server's certificate for billing.internal, and the one that the
# proxy shows. They are worth nothing outside of it.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 36500 -subj "/CN=authority of the example" \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign" \
    -keyout "$work/ca.key" -out ca.pem
sign() {
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj "/CN=$2" -keyout "$1.key" -out "$work/request.pem"
    printf 'subjectAltName=DNS:%s\n' "$2" > "$work/names"
    openssl x509 -req -in "$work/request.pem" -CA ca.pem -CAkey "$work/ca.key" -CAcreateserial -CAserial "$work/serial" \
        -days 36500 -extfile "$work/names" -out "$1.pem"
}
sign server billing.internal
sign edge edge.internal
