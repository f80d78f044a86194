#!/usr/bin/env bash
# Builds and installs real Kubernetes clients for test/clients/ into ~/.cache/oarlock/clients: Helm and a program on client-go
# from the Go module proxy, @kubernetes/client-node from npm, the Python client from PyPI. Clients that exist already are not built
# again. A client whose tools are missing is skipped with a message, and its tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

helm_version=3.22.0
client_node_version=2.0.1
python_client_version=36.0.3
cache="${OARLOCK_CLIENTS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/oarlock/clients}"
mkdir -p "$cache"

log() { echo "build-clients: $*" >&2; }

if command -v go >/dev/null; then
  if [ ! -x "$cache/helm-v$helm_version" ]; then
    log "building helm $helm_version…"
    work=$(mktemp -d)
    (
      cd "$work"
      go mod init oarlock.dev/helm 2>/dev/null
      go mod edit -require "helm.sh/helm/v3@v$helm_version"
      go build -mod=mod -trimpath -ldflags='-s -w' -o "$cache/helm-v$helm_version.partial" helm.sh/helm/v3/cmd/helm
    )
    mv "$cache/helm-v$helm_version.partial" "$cache/helm-v$helm_version"
    rm -rf "$work"
  fi
  ln -sfn "helm-v$helm_version" "$cache/helm"
  sources=$(cat test/clients/client-go/* | sha256sum | cut -c1-12)
  if [ ! -x "$cache/client-go-$sources" ]; then
    log "building the program on client-go…"
    go build -C test/clients/client-go -trimpath -ldflags='-s -w' -o "$cache/client-go-$sources" .
  fi
  ln -sfn "client-go-$sources" "$cache/client-go"
else
  log "go is not on PATH: skipping Helm and client-go"
fi

node="$cache/client-node-$client_node_version"
if [ ! -d "$node" ]; then
  log "installing @kubernetes/client-node $client_node_version…"
  rm -rf "$node.partial" && mkdir -p "$node.partial"
  if (cd "$node.partial" && npm init -y >/dev/null && npm install --no-audit --no-fund --ignore-scripts "@kubernetes/client-node@$client_node_version" >&2); then
    mv "$node.partial" "$node"
  else
    log "npm failed to install @kubernetes/client-node"
  fi
fi
[ -d "$node" ] && ln -sfn "client-node-$client_node_version" "$cache/client-node"

if command -v python3 >/dev/null; then
  python="$cache/python-$python_client_version"
  if [ ! -d "$python" ]; then
    log "installing the Python client $python_client_version…"
    rm -rf "$python.partial"
    # A plain directory, not a venv, which could not be moved when it is complete.
    if python3 -m pip install --quiet --disable-pip-version-check --target "$python.partial" "kubernetes==$python_client_version" >&2; then
      mv "$python.partial" "$python"
    else
      log "pip failed to install the Python client"
    fi
  fi
  [ -d "$python" ] && ln -sfn "python-$python_client_version" "$cache/python"
else
  log "python3 is not on PATH: skipping the Python client"
fi
echo "$cache"
