package define_test

import (
	"reflect"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

func TestParseTable(t *testing.T) {
	create := "CREATE TABLE `odd ``t` (\n" +
		"  `id` bigint(20) unsigned zerofill NOT NULL AUTO_INCREMENT,\n" +
		"  `a,b(c` enum('x''y','),(\\\\') CHARACTER SET latin1 COLLATE latin1_bin DEFAULT 'x''y' COMMENT 'NOT NULL, GENERATED',\n" +
		"  `v` int GENERATED ALWAYS AS ((`id` + 1)) STORED,\n" +
		"  `w` int(11) AS (`id` + 2) PERSISTENT,\n" +
		"  `n` varchar(20) COLLATE utf8mb4_bin NOT NULL DEFAULT 'GENERATED' /*!80023 INVISIBLE */,\n" +
		"  `d` text,\n" +
		"  `ts` timestamp(6) GENERATED ALWAYS AS ROW START,\n" +
		"  PRIMARY KEY (`id`,`n`(5) DESC),\n" +
		"  UNIQUE KEY `u``k` (`n`) /*!80000 INVISIBLE */,\n" +
		"  KEY `f` ((lower(`n`))),\n" +
		"  FULLTEXT KEY `ft` (`d`),\n" +
		"  CONSTRAINT `c` FOREIGN KEY (`v`) REFERENCES `x` (`y`) ON DELETE CASCADE,\n" +
		"  CONSTRAINT `k` CHECK (`id` > 0)\n" +
		") ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='ENGINE=MyISAM (PARTITION BY'\n" +
		"/*!50100 PARTITION BY RANGE (`id`)\nSUBPARTITION BY LINEAR KEY (n,`id`)\n(PARTITION v VALUES LESS THAN (4) ENGINE = InnoDB) */"
	got, err := define.ParseTable("s", create)
	if err != nil {
		t.Fatal(err)
	}
	want := define.Table{Schema: "s", Name: "odd `t", Engine: "InnoDB", Charset: "utf8mb4", Collation: "utf8mb4_general_ci", Partitioned: true, SpreadBy: []string{"id", "n"}, Create: create,
		ForeignKeys: []define.ForeignKey{{Name: "c", Columns: []string{"v"}, Referenced: mysql.TableName{Schema: "s", Name: "x"}, To: []string{"y"}}},
		Columns: []define.TableColumn{
			{Name: "id", Type: "bigint", FullType: "bigint(20) unsigned zerofill", Unsigned: true, Auto: true},
			{Name: "a,b(c", Type: "enum", FullType: "enum('x''y','),(\\\\')", Charset: "latin1", Collation: "latin1_bin", Nullable: true, Default: true},
			{Name: "v", Type: "int", FullType: "int", Nullable: true, Generated: true},
			{Name: "w", Type: "int", FullType: "int(11)", Nullable: true, Generated: true},
			{Name: "n", Type: "varchar", FullType: "varchar(20)", Charset: "utf8mb4", Collation: "utf8mb4_bin", Invisible: true, Default: true},
			{Name: "d", Type: "text", FullType: "text", Charset: "utf8mb4", Collation: "utf8mb4_general_ci", Nullable: true},
			{Name: "ts", Type: "timestamp", FullType: "timestamp(6)", Nullable: true, Generated: true, Period: "START"},
		},
		Keys: []define.TableKey{
			{Name: "PRIMARY", Unique: true, Parts: []define.KeyPart{{Column: "id"}, {Column: "n", Prefix: 5, Descending: true}}, Text: "PRIMARY KEY (`id`,`n`(5) DESC)"},
			{Name: "u`k", Unique: true, Hidden: true, Parts: []define.KeyPart{{Column: "n"}}, Text: "UNIQUE KEY `u``k` (`n`) /*!80000 INVISIBLE */"},
			{Name: "f", Special: true, Parts: []define.KeyPart{{Expression: "(lower(`n`))"}}, Text: "KEY `f` ((lower(`n`)))"},
			{Name: "ft", Special: true, Parts: []define.KeyPart{{Column: "d"}}, Text: "FULLTEXT KEY `ft` (`d`)"},
		}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, broken := range []string{"", "CREATE TABLE x", "CREATE TABLE `x", "CREATE TABLE `x` (`a", "CREATE TABLE `x` (`a` int", "CREATE TABLE `x` (`a`)"} {
		if _, err := define.ParseTable("s", broken); err == nil {
			t.Errorf("%q was read", broken)
		}
	}
	commented, err := define.ParseTable("s", "CREATE TABLE `t` (`a` int, /* ), it's ( */ `b` enum('\\'),(') -- )\n) ENGINE = Aria COMMENT 'it''s' /*!50100 PARTITION BY KEY (`a`) */")
	if err != nil || len(commented.Columns) != 2 || commented.Columns[1].FullType != `enum('\'),(')` || commented.Engine != "Aria" || !commented.Partitioned {
		t.Errorf("got %+v, %v; want len(Columns) 2, Columns[1].FullType \"enum('\\\\'),(')\", Engine \"Aria\", Partitioned true", commented, err)
	}
	seq, err := define.ParseTable("s", "CREATE SEQUENCE `q` start with 7 minvalue 1 maxvalue 9 increment by 1 cache 1000 nocycle ENGINE=InnoDB")
	if err != nil || !seq.Sequence || seq.Name != "q" || seq.Engine != "InnoDB" {
		t.Errorf("got %+v, %v; want Sequence true, Name \"q\", Engine \"InnoDB\"", seq, err)
	}
}
