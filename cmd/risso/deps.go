package main

import (
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/klauspost/compress/fse"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/prometheus/prometheus/model/labels"
	_ "github.com/prometheus/prometheus/promql"
	_ "github.com/prometheus/prometheus/promql/parser"
	_ "github.com/prometheus/prometheus/storage"
	_ "github.com/prometheus/prometheus/tsdb"
	_ "github.com/spf13/cobra"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "gopkg.in/yaml.v3"
	_ "modernc.org/sqlite"
)

func main() {}
