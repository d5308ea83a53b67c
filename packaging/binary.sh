#!/bin/sh
# binary.sh FILE: builds the program as it is shipped, for GOARCH: static, stripped, the same bytes from the same
# source. Without grpc's page of traces, and with it templates, the linker leaves out methods that nobody calls.
set -eu
out=$1
cd "$(dirname "$0")/.."
CGO_ENABLED=0 ${GO:-go} build -tags grpcnotrace -trimpath -ldflags '-s -w' -o "$out" ./cmd/tarn
