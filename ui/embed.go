// Package ui holds the built web page, so that the binary serves it without
// any other file. The page's sources are next to this file; `npm run
// build` makes dist, which is committed so that `go build` needs no Node.
package ui

import "embed"

// Dist is the built page: dist/index.html and the files it names.
//
//go:embed all:dist
var Dist embed.FS
