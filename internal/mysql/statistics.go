package mysql

import "strings"

// KeptStatistics is a table of the schema mysql in which a server keeps what its optimiser estimates from.
type KeptStatistics struct {
	Table        string
	Schema, Name string   // its columns that name a table
	Columns      []string // the others, but for when they were written
	Binary       []string // those of them that hold bytes
	Own          bool     // it has rows of a table from the beginning, under the name of each partition
}

// KeptStatistics are those tables. Sources: MySQL manual, "Configuring Persistent Optimizer Statistics Parameters"; MariaDB documentation,
// "Engine-Independent Table Statistics". What is written there counts after RereadStatistics.
func (s Server) KeptStatistics() []KeptStatistics {
	list := []KeptStatistics{
		{Table: "innodb_table_stats", Schema: "database_name", Name: "table_name", Own: true, Columns: []string{"n_rows", "clustered_index_size", "sum_of_other_index_sizes"}},
		{Table: "innodb_index_stats", Schema: "database_name", Name: "table_name", Own: true, Columns: []string{"index_name", "stat_name", "stat_value", "sample_size", "stat_description"}},
	}
	if s.MariaDB() {
		list = append(list,
			KeptStatistics{Table: "table_stats", Schema: "db_name", Name: "table_name", Columns: []string{"cardinality"}},
			KeptStatistics{Table: "index_stats", Schema: "db_name", Name: "table_name", Columns: []string{"index_name", "prefix_arity", "avg_frequency"}},
			KeptStatistics{Table: "column_stats", Schema: "db_name", Name: "table_name", Columns: []string{"column_name", "min_value", "max_value", "nulls_ratio", "avg_length", "avg_frequency", "hist_size", "hist_type", "histogram"},
				Binary: []string{"min_value", "max_value", "histogram"}})
	}
	return list
}

// RereadStatistics is the statement after which the optimiser estimates from what was written into KeptStatistics; "": only a restart does
// that, for MariaDB's InnoDB keeps what it has read of a table (seen with 10.11.19).
func (s Server) RereadStatistics() string {
	if s.MariaDB() {
		return ""
	}
	return "FLUSH /* risso: read the statistics */ TABLES"
}

// HasHistograms reports whether information_schema.COLUMN_STATISTICS has histograms: MySQL since 8.0.3.
func (s Server) HasHistograms() bool { return s.atLeast(80003) }

// TakesHistograms reports whether a histogram can be given to a server as it was read from another: MySQL since 8.0.31
// (https://dev.mysql.com/doc/refman/8.4/en/analyze-table.html).
func (s Server) TakesHistograms() bool { return s.atLeast(80031) }

// HistogramData is a histogram as this server takes it. MySQL since 8.4 wants to be told whether it keeps it up to date, which older versions do not
// say (seen from 8.0.15 to 9.7.4).
func (s Server) HistogramData(data string) string {
	if rest, object := strings.CutPrefix(data, "{"); object && s.atLeast(80400) && !strings.Contains(data, `"auto-update"`) {
		return `{"auto-update": false, ` + rest
	}
	return data
}

// EstimateEqual lets this session estimate from statistics how many rows equal a value, rather than to look into the index for each: both
// flavours. For other ranges they look into the index in any case.
func (s Server) EstimateEqual() string {
	return "SET SESSION /* risso: estimate from statistics */ eq_range_index_dive_limit = 1"
}
