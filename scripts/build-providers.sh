#!/bin/sh
# Builds the providers hashicorp/time and hashicorp/local from the Go module proxy into a Terraform filesystem mirror, so that tests of
# provider installation and of drift need no registry. Prints the mirror's directory on stdout; use it in a CLI configuration file:
#   provider_installation { filesystem_mirror { path = "<mirror>" } }
#   OARLOCK_BUILD_CACHE  where to put it (default: ~/.cache/oarlock)
# Builds nothing that is already there. Each binary lies under both registries, as terraform and tofu look under their own.
set -eu

cache=${OARLOCK_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/oarlock}
mirror=$cache/mirror

build() {
  provider=$1
  version=$2
  done_mark=$mirror/.$provider-$version
  [ ! -e "$done_mark" ] || return 0
  command -v go >/dev/null || { echo "build-providers: go was not found on PATH; install it from https://go.dev/dl/ and try again" >&2; exit 1; }
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/build-providers.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "build-providers: building terraform-provider-$provider v$version into $mirror" >&2
  (cd "$work" && GOBIN=$work nice -n 10 go install -trimpath -ldflags '-s -w' "github.com/$3/terraform-provider-$provider@v$version" >&2)
  platform=$(go env GOOS)_$(go env GOARCH)
  for registry in registry.terraform.io registry.opentofu.org; do
    target=$mirror/$registry/hashicorp/$provider/$version/$platform
    mkdir -p "$target"
    cp "$work/terraform-provider-$provider" "$target/terraform-provider-${provider}_v${version}_x5"
  done
  touch "$done_mark"
  rm -rf "$work"
}

build time 0.14.2 hashicorp
# The last release of local whose module path names its place at the time.
build local 1.4.0 terraform-providers
echo "$mirror"
