#!/bin/sh
# Makes the certificates of this example anew. They are signed by themselves, and worth nothing outside of it.
set -eu
cd "$(dirname "$0")"
make() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 36500 -subj "/CN=$2" \
        -addext "subjectAltName=DNS:$2" -addext "basicConstraints=critical,CA:FALSE" -keyout "$1.key" -out "$1.pem"
}
make shop shop.example
make apps '*.apps.example'
