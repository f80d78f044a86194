#!/usr/bin/env bash
# Builds KEDA's operator and metrics server from the Go module proxy into ~/.cache/oarlock/keda, with the manifests of the module, for
# test/keda.slow.test.ts. Not part of .ci/run: it compiles the SDKs of all clouds, which takes about 25 minutes of two cores and 4 GB of disk.
# Binaries that exist already are not built again. Needs Go >= 1.26 and kubectl.
set -euo pipefail

keda_version=2.21.0
cache="${OARLOCK_KEDA_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/oarlock/keda}"
target="$cache/$keda_version"
for program in go kubectl; do
  if ! command -v "$program" >/dev/null; then
    echo "build-keda: $program is not on PATH, so KEDA cannot be built" >&2
    exit 1
  fi
done
mkdir -p "$target"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
module=$(go mod download -json "github.com/kedacore/keda/v2@v$keda_version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
# A copy: the replacements of other modules in its go.mod apply only to the main module, and the module cache is read-only.
cp -r "$module" "$work/keda"
chmod -R u+w "$work/keda"
for program in operator adapter; do
  [ ! -x "$target/$program" ] || continue
  echo "build-keda: building the $program of KEDA ${keda_version}…" >&2
  CGO_ENABLED=0 go build -C "$work/keda" -trimpath -ldflags='-s -w' -o "$target/$program.partial" "./cmd/$program"
  mv "$target/$program.partial" "$target/$program"
done
kubectl kustomize "$work/keda/config/minimal" >"$target/keda.yaml"
ln -sfn "$keda_version" "$cache/current"
echo "$cache"
