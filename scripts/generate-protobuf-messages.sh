#!/usr/bin/env bash
# Writes src/kubernetes/server/http/schemas/protobuf-messages.json from the Go types of Kubernetes v1.36.3. Needs Go; half a minute.
set -euo pipefail
cd "$(dirname "$0")/.."
target=src/kubernetes/server/http/schemas/protobuf-messages.json
mkdir -p "$(dirname "$target")"
go run -C scripts/protobuf-messages . >"$target.partial"
mv "$target.partial" "$target"
