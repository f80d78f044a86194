#!/usr/bin/env bash
# Installs ansible-core from PyPI into ~/.cache/oarlock/ansible, for tests of engine ansible with a newer release than that of Debian. What is
# installed already is not installed again. Needs Python >= 3.11 with venv.
set -euo pipefail

ansible_version=2.19.14
cache="${OARLOCK_ANSIBLE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/oarlock/ansible}"
target="$cache/$ansible_version"
if [ ! -x "$target/bin/ansible-playbook" ]; then
  echo "build-ansible: installing ansible-core ${ansible_version}…" >&2
  rm -rf "$target"
  python3 -m venv "$target"
  "$target/bin/pip" install --quiet --disable-pip-version-check "ansible-core==$ansible_version"
fi
ln -sfn "$ansible_version" "$cache/current"
