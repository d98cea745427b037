package binlog

import (
	"testing"

	"github.com/rissodb/risso/internal/binlogevent"
)

// TestRenamed: a statement that alters the one renamed table is applied to it under that name; one that may name it again, or another one,
// is left alone.
func TestRenamed(t *testing.T) {
	o := RollOptions{Only: func(schema, table string) bool { return schema == "s" && (table == "t" || table == "quo`ted") },
		Names: func(schema, table string) (string, string) { return "n", table + "2" }}
	ansi := uint64(modeAnsiQuotes)
	for _, c := range []struct {
		text, want string
		mode       *uint64
	}{
		{"ALTER TABLE t ADD x INT COMMENT 't s.t'", "ALTER TABLE `n`.`t2` ADD x INT COMMENT 't s.t'", nil},
		{"/* t */ alter online table if exists s . t drop x -- t", "/* t */ alter online table if exists `n`.`t2` drop x -- t", nil},
		{"ALTER TABLE `s`.`quo``ted` RENAME COLUMN a TO b, RENAME INDEX t TO u", "ALTER TABLE `n`.`quo``ted2` RENAME COLUMN a TO b, RENAME INDEX t TO u", nil},
		{`ALTER TABLE "s"."t" ADD "t" INT`, "ALTER TABLE `n`.`t2` ADD \"t\" INT", &ansi},
		{"CREATE UNIQUE INDEX t USING BTREE ON t (t)", "CREATE UNIQUE INDEX t USING BTREE ON `n`.`t2` (t)", nil},
		{"DROP INDEX t ON s.t", "DROP INDEX t ON `n`.`t2`", nil}, {"TRUNCATE t", "TRUNCATE `n`.`t2`", nil}, {"TRUNCATE TABLE s.t", "TRUNCATE TABLE `n`.`t2`", nil},
		{"ALTER TABLE t RENAME u", "", nil}, {"ALTER TABLE t RENAME TO u", "", nil}, {"ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES t (b)", "", nil}, {"ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", "", nil},
		{"ALTER TABLE t DROP FOREIGN KEY ключ", "", nil}, {"ALTER TABLE t ADD CONSTRAINT größe CHECK (x > 0)", "", nil}, {"ALTER TABLE t DROP KEY ключ, DROP FOREIGN KEY f", "ALTER TABLE `n`.`t2` DROP KEY ключ, DROP FOREIGN KEY f", nil},
		{"ALTER TABLE other ADD x INT", "", nil}, {"DROP TABLE t", "", nil}, {"CREATE TABLE t (id INT)", "", nil}, {"UPDATE t SET x = 1", "", nil}, {"RENAME TABLE t TO u", "", nil}, {"ALTER DATABASE s COLLATE x", "", nil},
		{"ALTER TABLE", "", nil}, {"CREATE INDEX i ON", "", nil}, {"", "", nil},
	} {
		q, ok := o.renamed(binlogevent.Query{Schema: "s", Text: []byte(c.text), SQLMode: c.mode})
		if ok != (c.want != "") || ok && (string(q.Text) != c.want || q.Schema != "n") {
			t.Errorf("%s: %v, %s in %s", c.text, ok, q.Text, q.Schema)
		}
	}
	o.Names = func(schema, table string) (string, string) { return "größe", table }
	if _, ok := o.renamed(binlogevent.Query{Schema: "s", Text: []byte("TRUNCATE t")}); ok {
		t.Error("a name goes into a text of whatever character set")
	}
}

// TestMayBeGone: an event that is dropped need not be there; nothing else changes.
func TestMayBeGone(t *testing.T) {
	for text, want := range map[string]string{
		"DROP EVENT e": "DROP EVENT IF EXISTS e", "drop /* IF EXISTS */ event `s`.`e` -- e": "drop /* IF EXISTS */ event IF EXISTS `s`.`e` -- e",
		"DROP EVENT IF EXISTS e": "", "DROP EVENT /*!50000 if exists */ e": "", "DROP TABLE e": "", "DROP PROCEDURE event": "", "DROP EVENT": "", "ALTER EVENT e DISABLE": "", "": "",
	} {
		if want == "" {
			want = text
		}
		if q := mayBeGone(binlogevent.Query{Text: []byte(text)}); string(q.Text) != want {
			t.Errorf("%s: got %s, want %v", text, q.Text, want)
		}
	}
}
