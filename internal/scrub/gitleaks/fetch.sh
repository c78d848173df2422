#!/usr/bin/env bash
# Fetches gitleaks' rules at the pinned version, with their licence, through Go's module proxy, which
# checks them against Go's checksum database. Run it after changing the version, then run the tests of scrub.
set -euo pipefail
cd "$(dirname "$0")"
GITLEAKS=v8.30.1

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
dir=$(cd "$tmp" && go mod download -json "github.com/zricethezav/gitleaks/v8@$GITLEAKS" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
install -m 644 "$dir/config/gitleaks.toml" gitleaks.toml
install -m 644 "$dir/LICENSE" LICENSE.txt
sed -i "s/^Version: .*/Version: $GITLEAKS/" README.md
