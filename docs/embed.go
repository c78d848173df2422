// Package docs has the pages of this directory and their pictures, which the server shows at /docs.
package docs

import "embed"

// Files has the pages and, below pictures, their pictures.
//
//go:embed *.md pictures/*.jpg
var Files embed.FS
