package advise_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// table makes a table of a definition's inside.
func table(t *testing.T, inside string) *advise.Table {
	t.Helper()
	d, err := define.ParseTable("d", "CREATE TABLE `t` (\n"+inside+"\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")
	if err != nil {
		t.Fatal(err)
	}
	return &advise.Table{Table: d, Rows: 5000}
}

// found are the IDs and objects of findings, sorted.
func found(list []advise.Finding) (out []string) {
	for _, f := range list {
		out = append(out, f.ID+" "+f.Object+" "+string(f.Sure))
	}
	slices.Sort(out)
	return out
}

const columns = "`id` int NOT NULL,`a` int,`b` int,`c` varchar(20) NOT NULL,`d` text,"

func TestRedundantIndexes(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		want       string // names of indexes that are redundant, sorted; ? behind one that is only likely so
		refs       []advise.Reference
		hint       string
	}{
		{name: "none", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kb` (`b`)"},
		{name: "twice", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kb` (`a`)", want: "kb"},
		{name: "a prefix", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kab` (`a`,`b`)", want: "ka?"},
		{name: "a prefix in MyISAM's order", keys: "PRIMARY KEY (`id`), KEY `kab` (`a`,`b`), KEY `kba` (`b`,`a`)"},
		{name: "with the primary key", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kaid` (`a`,`id`)", want: "kaid"},
		{name: "all three", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kab` (`a`,`b`), KEY `kaid` (`a`,`id`)", want: "ka? kaid?"},
		{name: "beside a unique one", keys: "PRIMARY KEY (`id`), UNIQUE KEY `ua` (`a`), KEY `ia` (`a`,`id`)", want: "ia"},
		{name: "a unique one is not", keys: "PRIMARY KEY (`id`), UNIQUE KEY `ua` (`a`), KEY `kab` (`a`,`b`)"},
		{name: "a unique one twice", keys: "PRIMARY KEY (`id`), UNIQUE KEY `ua` (`a`), UNIQUE KEY `ub` (`a`)", want: "ub"},
		{name: "unique with the primary key", keys: "PRIMARY KEY (`id`), UNIQUE KEY `u` (`a`,`id`), KEY `ka` (`a`)", want: "u"},
		{name: "unique by another", keys: "PRIMARY KEY (`id`), UNIQUE KEY `u` (`a`), UNIQUE KEY `uab` (`a`,`b`)"},
		{name: "the primary key as an index", keys: "PRIMARY KEY (`id`), KEY `k` (`id`)", want: "k?"},
		{name: "the primary key as a unique index", keys: "PRIMARY KEY (`id`), UNIQUE KEY `k` (`id`)", want: "k?"},
		{name: "a shorter prefix", keys: "PRIMARY KEY (`id`), KEY `kc` (`c`), KEY `k5` (`c`(5))", want: "k5?"},
		{name: "a unique prefix demands more", keys: "PRIMARY KEY (`id`), UNIQUE KEY `uc` (`c`), UNIQUE KEY `u5` (`c`(5))"},
		{name: "a longer prefix is not", keys: "PRIMARY KEY (`id`), KEY `k5` (`d`(5),`a`), KEY `k9` (`d`(9))"},
		{name: "the other direction", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kd` (`a` DESC,`b`)", want: "ka?"},
		{name: "directions that differ", keys: "PRIMARY KEY (`id`), KEY `kab` (`a`,`b`), KEY `kdb` (`a` DESC,`b`,`c`)"},
		{name: "both turned", keys: "PRIMARY KEY (`id`), KEY `kab` (`a`,`b` DESC), KEY `kdb` (`a` DESC,`b`,`c`)", want: "kab?"},
		{name: "hidden does no work", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kab` (`a`,`b`) /*!80000 INVISIBLE */"},
		{name: "hidden itself", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`) IGNORED, KEY `kab` (`a`,`b`)", want: "ka?"},
		{name: "full text", keys: "PRIMARY KEY (`id`), FULLTEXT KEY `f` (`d`), FULLTEXT KEY `g` (`d`), FULLTEXT KEY `h` (`d`) /*!50100 WITH PARSER `ngram` */, KEY `k` (`d`(9))", want: "g"},
		{name: "expressions", keys: "PRIMARY KEY (`id`), KEY `e` ((lower(`c`))), KEY `f` ((lower(`c`))), KEY `g` ((upper(`c`)))", want: "f"},
		{name: "a foreign key has another", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kab` (`a`,`b`), CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`id`)", want: "ka?"},
		{name: "a foreign key needs it", keys: "PRIMARY KEY (`id`), KEY `ka` (`d`(5)), KEY `kb` (`a`,`b`), KEY `kc` (`a` DESC, `b`), CONSTRAINT `f` FOREIGN KEY (`a`,`b`) REFERENCES `p` (`a`,`b`)", want: ""},
		{name: "referred to", keys: "PRIMARY KEY (`id`), UNIQUE KEY `ua` (`a`), UNIQUE KEY `ub` (`a`)", want: "ub",
			refs: []advise.Reference{{ForeignKey: define.ForeignKey{Name: "f", Columns: []string{"x"}, To: []string{"a"}}}}},
		{name: "without a primary key", keys: "KEY `ka` (`a`), KEY `kab` (`a`,`b`)", want: "ka"},
		{name: "the key that InnoDB takes", keys: "UNIQUE KEY `uc` (`c`), KEY `ka` (`a`), KEY `kac` (`a`,`c`)", want: "kac"},
		{name: "what does its work goes, too", keys: "UNIQUE KEY `u` (`c`), KEY `ka` (`a`), KEY `kac` (`a`,`c`), KEY `kabc` (`a`,`b`,`c`)", want: "ka? kac?"},
		{name: "a hint", keys: "PRIMARY KEY (`id`), KEY `ka` (`a`), KEY `kb` (`a`)", want: "ka", hint: "kb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab := table(t, columns+c.keys)
			s := &advise.Server{Hinted: map[string]string{c.hint: "view `d`.`v`"}, References: map[mysql.TableName][]advise.Reference{{Schema: "d", Name: "t"}: c.refs}}
			var got, dropped, stay []string
			for _, f := range advise.OfTable(s, tab) {
				if f.ID != "index.redundant" {
					continue
				}
				dropped, stay = append(dropped, f.Evidence[0]), append(stay, f.Evidence[1])
				name := strings.TrimPrefix(f.Object, "d.t.")
				if f.Sure == advise.Likely {
					name += "?"
				}
				got = append(got, name)
				if want := "ALTER TABLE `d`.`t` DROP INDEX `" + strings.TrimSuffix(name, "?") + "`"; f.Statement != want {
					t.Errorf("got statement %q, want %q", f.Statement, want)
				}
			}
			slices.Sort(got)
			for _, k := range stay {
				if slices.Contains(dropped, k) {
					t.Errorf("%s does the work of another, and is dropped", k)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", strings.Join(got, " "), c.want)
			}
		})
	}
}

// TestHinted: what a hint names is said, but not dropped.
func TestHinted(t *testing.T) {
	s := &advise.Server{Hinted: map[string]string{"ka": "view d.v"}}
	list := advise.OfTable(s, table(t, columns+"PRIMARY KEY (`id`), KEY `kA` (`a`), KEY `kab` (`a`,`b`)"))
	if len(list) != 1 || list[0].Statement != "" || !strings.Contains(list[0].Advice, "view d.v") {
		t.Errorf("got %+v; want one finding without a statement that names the view", list)
	}
}

// TestHashes: of an engine whose indexes are hashes only what is there twice is redundant.
func TestHashes(t *testing.T) {
	tab := table(t, "`a` int,`b` int,KEY `ka` (`a`),KEY `kab` (`a`,`b`),KEY `kb` (`a`)")
	tab.Engine = "MEMORY"
	list := slices.DeleteFunc(advise.OfTable(&advise.Server{}, tab), func(f advise.Finding) bool { return f.ID != "index.redundant" })
	if got := found(list); !slices.Equal(got, []string{"index.redundant d.t.kb certain"}) {
		t.Errorf("got %q, want only kb", got)
	}
}

func TestPrimaryKeys(t *testing.T) {
	for _, c := range []struct{ inside, want, statement string }{
		{"`a` int, PRIMARY KEY (`a`)", "", ""},
		{"`a` int", "schema.no_pk d.t likely", "ALTER TABLE `d`.`t` ADD COLUMN `id` bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST"},
		{"`ID` int", "schema.no_pk d.t likely", "ALTER TABLE `d`.`t` ADD COLUMN `id2` bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST"},
		{"`a` int NOT NULL, `b` int, UNIQUE KEY `u` (`b`), UNIQUE KEY `v` (`a`)", "schema.no_pk d.t certain", "ALTER TABLE `d`.`t` ADD PRIMARY KEY (`a`), DROP INDEX `v`"},
		{"`a` int NOT NULL AUTO_INCREMENT, KEY `k` (`a`)", "schema.no_pk d.t likely", ""},
	} {
		list := advise.OfTable(&advise.Server{}, table(t, c.inside))
		if got := strings.Join(found(list), ", "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.inside, got, c.want)
		} else if len(list) == 1 && list[0].Statement != c.statement {
			t.Errorf("%s: got %q, want %q", c.inside, list[0].Statement, c.statement)
		}
	}
}

func TestAutoIncrement(t *testing.T) {
	for _, c := range []struct {
		kind string
		next float64
		want string
	}{
		{"tinyint unsigned", 204, ""},
		{"tinyint unsigned", 205, "warning ALTER TABLE `d`.`t` MODIFY COLUMN `a` bigint unsigned NOT NULL AUTO_INCREMENT COMMENT 'x,)'"},
		{"tinyint(3) unsigned", 250, "critical ALTER TABLE `d`.`t` MODIFY COLUMN `a` bigint unsigned NOT NULL AUTO_INCREMENT COMMENT 'x,)'"},
		{"int", 2147483647, "critical ALTER TABLE `d`.`t` MODIFY COLUMN `a` bigint NOT NULL AUTO_INCREMENT COMMENT 'x,)'"},
		{"bigint", 9.2e18, "critical "},
		{"bigint", 7e18, ""},
	} {
		tab := table(t, "`a` "+c.kind+" NOT NULL AUTO_INCREMENT COMMENT 'x,)', PRIMARY KEY (`a`)")
		tab.Next = c.next
		got := ""
		for _, f := range advise.OfTable(&advise.Server{}, tab) {
			got += f.Severity.String() + " " + f.Statement
		}
		if got != c.want {
			t.Errorf("%s at %.0f: got %q, want %q", c.kind, c.next, got, c.want)
		}
	}
}

func TestSeveral(t *testing.T) {
	one := []advise.Finding{{ID: "a", Object: "x", Cost: advise.Cost{Bytes: 2}}, {ID: "b", Object: "y"}}
	two := []advise.Finding{{ID: "a", Object: "x", Severity: fleet.SeverityCritical, Cost: advise.Cost{Bytes: 3}}}
	got := advise.Several([]string{"s1", "s2"}, [][]advise.Finding{one, two})
	if len(got) != 2 || got[0].ID != "a" || got[0].Severity != fleet.SeverityCritical || got[0].Cost.Bytes != 5 || !slices.Equal(got[0].Servers, []string{"s1", "s2"}) || !slices.Equal(got[1].Servers, []string{"s1"}) {
		t.Errorf("got %+v", got)
	}
}
