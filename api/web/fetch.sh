#!/usr/bin/env bash
# Fetches the viewers of the API at their pinned versions. Needs npm. Run it
# after changing a version here, then look at /openapi and /v1/docs in a browser.
set -euo pipefail
cd "$(dirname "$0")"
SWAGGER_UI=5.35.0
REDOC=2.5.4

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fetch() {
	local tgz
	tgz=$(npm pack --silent --pack-destination "$tmp" "$1")
	rm -rf "$tmp/package"
	tar -xzf "$tmp/$tgz" -C "$tmp"
}

fetch "swagger-ui-dist@$SWAGGER_UI"
# The source maps stay behind, and so do the lines that name them.
sed '/^\/\/# sourceMappingURL=/d' "$tmp/package/swagger-ui-bundle.js" > swagger-ui-bundle.js
sed '/^\/\*# sourceMappingURL=/d' "$tmp/package/swagger-ui.css" > swagger-ui.css
cat "$tmp/package/NOTICE" "$tmp/package/LICENSE" > swagger-ui.LICENSE.txt
cp "$tmp/package/swagger-ui-bundle.js.LICENSE.txt" swagger-ui-bundle.LICENSE.txt

fetch "redoc@$REDOC"
# Its footer shows a logo from a CDN, which our policy refuses; it hides a logo
# that does not load, so this one never does.
sed -e '/^\/\/# sourceMappingURL=/d' -e 's#https://cdn\.redoc\.ly/[a-z/-]*\.svg#data:,#' \
	"$tmp/package/bundles/redoc.standalone.js" > redoc.standalone.js
cp "$tmp/package/LICENSE" redoc.LICENSE.txt
cp "$tmp/package/bundles/redoc.standalone.js.LICENSE.txt" redoc.standalone.LICENSE.txt
