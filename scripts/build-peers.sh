#!/usr/bin/env bash
# Builds the programs that tests compare with, and the cluster that tests run on, from the Go module proxy into ~/.cache/oarlock/peer: etcd, kube-apiserver,
# kube-controller-manager, kube-scheduler, kubelet, kube-proxy, CoreDNS, kubectl unless it is on PATH, and promtool.
# Binaries that exist already are not built again. Takes about 12 minutes on 2 cores: half of them for kube-apiserver and etcd, 2 for the other
# parts of Kubernetes, 2 for CoreDNS. Needs Go >= 1.26.
set -euo pipefail

kubernetes_version=1.36.3
etcd_version=3.6.5
coredns_version=1.15.0
prometheus_version=0.316.0
cache="${OARLOCK_PEER_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/oarlock/peer}"
mkdir -p "$cache"

if ! command -v go >/dev/null; then
  echo "build-peers: go is not on PATH, so the peers cannot be built" >&2
  exit 1
fi

# build NAME MODULE@VERSION PACKAGE [STAGING_VERSION] [BUILD_TAGS]
build() {
  local name=$1 module=${2%@*} version=${2#*@} package=$3 staging=${4:-} tags=${5:-}
  local target="$cache/$name-$version"
  if [ ! -x "$target" ]; then
    echo "build-peers: building $name $version…" >&2
    local work
    work=$(mktemp -d)
    (
      cd "$work"
      go mod init oarlock.dev/peer 2>/dev/null
      if [ -n "$staging" ]; then
        # k8s.io/kubernetes requires its staging modules as v0.0.0: each is replaced by its release.
        local gomod
        gomod=$(go mod download -json "$module@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
        sed -nE "s,^\t(k8s\.io/[^ ]+) v0\.0\.0( .*)?\$,\1,p" "$gomod" | sort -u | while read -r path; do
          go mod edit -replace "$path=$path@$staging"
        done
      fi
      go mod edit -require "$module@$version"
      go build -mod=mod -tags "$tags" -trimpath -ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$target.partial" "$package"
    )
    mv "$target.partial" "$target"
    rm -rf "$work"
  fi
  ln -sfn "$name-$version" "$cache/$name"
}

build etcd "go.etcd.io/etcd/server/v3@v$etcd_version" go.etcd.io/etcd/server/v3
for component in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy; do
  build "$component" "k8s.io/kubernetes@v$kubernetes_version" "k8s.io/kubernetes/cmd/$component" "v0.${kubernetes_version#1.}"
done
build coredns "github.com/coredns/coredns@v$coredns_version" github.com/coredns/coredns
# Tests use the kubectl on PATH; without one, they use this binary (.ci/run adds the folder to PATH).
command -v kubectl >/dev/null ||
  build kubectl "k8s.io/kubernetes@v$kubernetes_version" k8s.io/kubernetes/cmd/kubectl "v0.${kubernetes_version#1.}"
# The first process of each Pod of the test cluster.
sources=$(cat "$(dirname "$0")"/../test/cluster/pause/* | sha256sum | cut -c1-12)
if [ ! -x "$cache/pause-$sources" ]; then
  CGO_ENABLED=0 go build -C "$(dirname "$0")/../test/cluster/pause" -trimpath -ldflags='-s -w' -o "$cache/pause-$sources" .
fi
ln -sfn "pause-$sources" "$cache/pause"
# Evaluates alert rules in tests, which need no service discovery: without it, half of the modules are not needed.
build promtool "github.com/prometheus/prometheus@v$prometheus_version" github.com/prometheus/prometheus/cmd/promtool '' remove_all_sd
echo "$cache"
