//go:build cgo

package squeeze

// DuckDB's library holds libzstd; nothing else of it comes along.
import _ "github.com/duckdb/duckdb-go-bindings/lib/linux-arm64"
