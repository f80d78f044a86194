#!/usr/bin/env bash
# Builds kwok from the Go module proxy into ~/.cache/oarlock/peer, for `npm run bench -- kwok`, with the stages of its module, by which its nodes and Pods
# become ready and are deleted. Not part of .ci/run. A binary that exists already is not built again. Takes about a minute. Needs Go >= 1.26.
set -euo pipefail

kwok_version=0.8.0
cache="${OARLOCK_PEER_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/oarlock/peer}"
target="$cache/kwok-$kwok_version"
if ! command -v go >/dev/null; then
  echo "build-kwok: go is not on PATH, so kwok cannot be built" >&2
  exit 1
fi
mkdir -p "$cache"
module=$(go mod download -json "sigs.k8s.io/kwok@v$kwok_version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
if [ ! -x "$target" ]; then
  echo "build-kwok: building kwok ${kwok_version}…" >&2
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # A copy: the replacements of other modules in its go.mod apply only to the main module, and the module cache is read-only.
  cp -r "$module" "$work/kwok"
  chmod -R u+w "$work/kwok"
  CGO_ENABLED=0 go build -C "$work/kwok" -trimpath -ldflags='-s -w' -o "$target.partial" ./cmd/kwok
  mv "$target.partial" "$target"
fi
stages="$module/kustomize/stage"
for file in "$stages"/node/fast/node-initialize.yaml "$stages"/node/heartbeat-with-lease/node-*.yaml "$stages"/pod/fast/pod-*.yaml; do
  printf -- '---\n'
  cat "$file"
done >"$cache/kwok-stages.yaml"
ln -sfn "kwok-$kwok_version" "$cache/kwok"
echo "$cache"
