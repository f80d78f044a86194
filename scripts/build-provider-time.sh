#!/bin/sh
# Builds the provider hashicorp/time from the Go module proxy into a Terraform filesystem mirror, so that tests of provider
# installation need no registry. Prints the mirror's directory on stdout; use it in a CLI configuration file:
#   provider_installation { filesystem_mirror { path = "<mirror>" } }
#   OARLOCK_BUILD_CACHE  where to put it (default: ~/.cache/oarlock)
# Does nothing when it is already there. The binary lies under both registries, as terraform and tofu look under their own.
set -eu

version=0.14.2
cache=${OARLOCK_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/oarlock}
mirror=$cache/mirror
platform=$(go env GOOS 2>/dev/null)_$(go env GOARCH 2>/dev/null) || true
name=terraform-provider-time_v${version}_x5
done_mark=$mirror/.time-$version

if [ -e "$done_mark" ]; then
  echo "$mirror"
  exit 0
fi
command -v go >/dev/null || { echo "build-provider-time: go was not found on PATH; install it from https://go.dev/dl/ and try again" >&2; exit 1; }

mkdir -p "$cache"
work=$(mktemp -d "$cache/build-provider-time.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "build-provider-time: building terraform-provider-time v$version into $mirror" >&2
cd "$work"
GOBIN=$work nice -n 10 go install -trimpath -ldflags '-s -w' "github.com/hashicorp/terraform-provider-time@v$version" >&2
for registry in registry.terraform.io registry.opentofu.org; do
  target=$mirror/$registry/hashicorp/time/$version/$platform
  mkdir -p "$target"
  cp "$work/terraform-provider-time" "$target/$name"
done
touch "$done_mark"
echo "$mirror"
