#!/bin/sh
# Builds OpenTofu from the Go module proxy into ~/.cache/oarlock/bin/tofu, for machines that cannot download a release.
# Does nothing when that file is already there in the wanted version. Prints the path of the binary, and nothing else, on stdout.
#   OARLOCK_BUILD_CACHE  where to put it (default: ~/.cache/oarlock)
# Needs go >= 1.25 and about 2 minutes on 2 cores.
set -eu

version=1.12.6
cache=${OARLOCK_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/oarlock}
binary=$cache/bin/tofu

if [ -x "$binary" ] && [ "$(cat "$binary.version" 2>/dev/null)" = "$version" ]; then
  echo "$binary"
  exit 0
fi
command -v go >/dev/null || { echo "build-tofu: go was not found on PATH; install it from https://go.dev/dl/ and try again" >&2; exit 1; }

mkdir -p "$cache/bin"
work=$(mktemp -d "$cache/build-tofu.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# The replace line is OpenTofu's own (its go.mod has it, and replace lines of a dependency do not count).
cat >go.mod <<MOD
module oarlock.dev/build-tofu

go 1.25.0

require github.com/opentofu/opentofu v$version

replace github.com/hashicorp/hcl/v2 v2.20.1 => github.com/opentofu/hcl/v2 v2.20.2-0.20251021132045-587d123c2828
MOD
cat >tools.go <<GO
//go:build tools

package tools

import _ "github.com/opentofu/opentofu/cmd/tofu"
GO

echo "build-tofu: building opentofu v$version into $binary" >&2
go mod tidy >&2 2>tidy.log || { cat tidy.log >&2; exit 1; }
nice -n 10 go build -trimpath -ldflags "-s -w -X github.com/opentofu/opentofu/version.dev=no" \
  -o "$work/tofu" github.com/opentofu/opentofu/cmd/tofu >&2
mv "$work/tofu" "$binary"
echo "$version" >"$binary.version"
echo "$binary"
