package trial_test

import "strings"

// A shop that lends films, in the spirit of the sample databases that everybody knows: sound is what every version takes.
var sound = []string{
	"CREATE DATABASE lending DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
	"CREATE TABLE lending.person (person_id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, given VARCHAR(40) NOT NULL, family VARCHAR(40) NOT NULL, changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, KEY family (family, given)) COLLATE utf8mb4_unicode_ci",
	"CREATE TABLE lending.title (title_id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(120) NOT NULL, about TEXT, made YEAR(4), rate DECIMAL(4,2) NOT NULL DEFAULT 4.99, rating ENUM('G','PG','R') DEFAULT 'G', extras SET('trailer','scenes'), FULLTEXT KEY words (name, about)) COLLATE utf8mb4_unicode_ci",
	"CREATE TABLE lending.cast_of (person_id INT UNSIGNED NOT NULL, title_id INT UNSIGNED NOT NULL, PRIMARY KEY (person_id, title_id), CONSTRAINT cast_person FOREIGN KEY (person_id) REFERENCES lending.person (person_id), CONSTRAINT cast_title FOREIGN KEY (title_id) REFERENCES lending.title (title_id) ON UPDATE CASCADE) COLLATE utf8mb4_unicode_ci",
	"CREATE TABLE lending.copy_of (copy_id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, title_id INT UNSIGNED NOT NULL, shelf INT NOT NULL, CONSTRAINT copy_title FOREIGN KEY (title_id) REFERENCES lending.title (title_id)) COLLATE utf8mb4_unicode_ci",
	"CREATE TABLE lending.loan (loan_id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, copy_id INT UNSIGNED NOT NULL, person_id INT UNSIGNED NOT NULL, taken DATETIME NOT NULL, back DATETIME, UNIQUE KEY once (copy_id, taken), KEY person (person_id)) COLLATE utf8mb4_unicode_ci",
	"CREATE TABLE lending.payment (payment_id INT NOT NULL, paid DATE NOT NULL, amount DECIMAL(6,2) NOT NULL, PRIMARY KEY (payment_id, paid)) COLLATE utf8mb4_unicode_ci PARTITION BY RANGE (YEAR(paid)) (PARTITION old VALUES LESS THAN (2020), PARTITION new VALUES LESS THAN MAXVALUE)",
	"CREATE VIEW lending.out_now AS SELECT t.name, p.family, l.taken FROM lending.loan l JOIN lending.copy_of c ON c.copy_id = l.copy_id JOIN lending.title t ON t.title_id = c.title_id JOIN lending.person p ON p.person_id = l.person_id WHERE l.back IS NULL",
	"CREATE VIEW lending.a_view_on_a_view AS SELECT name FROM lending.out_now",
	"CREATE FUNCTION lending.owed(who INT) RETURNS DECIMAL(8,2) READS SQL DATA RETURN (SELECT COALESCE(SUM(rate), 0) FROM lending.loan l JOIN lending.copy_of c ON c.copy_id = l.copy_id JOIN lending.title t ON t.title_id = c.title_id WHERE l.person_id = who)",
	"CREATE PROCEDURE lending.bring_back(which INT) UPDATE lending.loan SET back = NOW() WHERE loan_id = which",
	"CREATE TRIGGER lending.title_case BEFORE INSERT ON lending.title FOR EACH ROW SET NEW.name = TRIM(NEW.name)",
	"CREATE EVENT lending.tidy ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM lending.payment WHERE paid < '2000-01-01'",
}

// trap is something that MySQL 5.7 takes and a later version does not, or takes otherwise.
type trap struct {
	make       []string
	id, object string
	from       int  // the first of MySQL 8.0.15 and 9.7 where it has to be found: 80 or 97
	sure       bool // the new server itself says it
}

// objects are the names of what a trap makes, as problems have them.
func (t trap) objects() (list []string) {
	for _, m := range t.make {
		if i := strings.Index(m, "lending."); i >= 0 {
			name := strings.Trim(strings.FieldsFunc(m[i+len("lending."):], func(r rune) bool { return r == ' ' || r == '(' })[0], "`")
			list = append(list, "`lending`.`"+name+"`")
		}
	}
	return append(list, t.object+":")
}

// old is the sql_mode in which the traps are laid.
const old = "SET sql_mode = 'NO_AUTO_CREATE_USER'"

func traps() []trap {
	long := ""
	for len(long) < 300 {
		long += "x"
	}
	return []trap{
		{make: []string{"CREATE TABLE lending.`rank` (id INT PRIMARY KEY)"}, id: "name.reserved", object: "`lending`.`rank`", from: 80, sure: true},
		{make: []string{"CREATE TABLE lending.league (id INT PRIMARY KEY, `groups` INT, `window` INT)"}, id: "name.reserved", object: "`lending`.`league`.`groups`", from: 80, sure: true},
		{make: []string{"CREATE TABLE lending.check_up (id INT PRIMARY KEY, `qualify` INT)"}, id: "name.reserved", object: "`lending`.`check_up`.`qualify`", from: 97, sure: true},
		{make: []string{"CREATE PROCEDURE lending.`lead`() SELECT 1"}, id: "name.reserved", object: "procedure `lending`.`lead`", from: 80, sure: true},
		{make: []string{"CREATE PROCEDURE lending.unquoted() SELECT 1 AS rank"}, id: "object.refused", object: "procedure `lending`.`unquoted`", from: 80, sure: true},
		{make: []string{"CREATE TABLE lending.three_bytes (id INT PRIMARY KEY, t VARCHAR(20)) CHARACTER SET utf8"}, id: "column.utf8mb3", object: "`lending`.`three_bytes`", from: 80},
		{make: []string{"CREATE TABLE lending.old_default (id INT PRIMARY KEY, t VARCHAR(20)) CHARACTER SET utf8mb4"}, id: "collation.default", object: "`lending`.`old_default`", from: 80},
		{make: []string{"SET sql_mode = ''", "CREATE TABLE lending.zero (id INT PRIMARY KEY, d DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00', e DATE DEFAULT '0000-00-00')", old}, id: "default.zero_date", object: "`lending`.`zero`", from: 80, sure: true},
		{make: []string{"SET sql_mode = ''", "CREATE TABLE lending.zero_row (id INT PRIMARY KEY, born DATE)", "INSERT INTO lending.zero_row VALUES (1, '0000-00-00')", old}, id: "data.zero_date", object: "`lending`.`zero_row`.`born`", from: 80},
		{make: []string{"CREATE TABLE lending.in_parts (id INT PRIMARY KEY) ENGINE = MyISAM PARTITION BY HASH (id) PARTITIONS 2"}, id: "partition.engine", object: "`lending`.`in_parts`", from: 80, sure: true},
		{make: []string{"CREATE TABLE lending.long_enum (id INT PRIMARY KEY, e ENUM('a', '" + long + "'))"}, id: "column.enum_length", object: "`lending`.`long_enum`.`e`", from: 80, sure: true},
		{make: []string{"CREATE FUNCTION lending.hash_of(s VARCHAR(20)) RETURNS VARCHAR(50) DETERMINISTIC RETURN PASSWORD(s)"}, id: "function.removed", object: "function `lending`.`hash_of`", from: 80, sure: true},
		{make: []string{"CREATE VIEW lending.secrets AS SELECT HEX(ENCODE('a', 'b')) AS s"}, id: "function.removed", object: "view `lending`.`secrets`", from: 80, sure: true},
		{make: []string{"CREATE PROCEDURE lending.hidden() SELECT DES_ENCRYPT('a')"}, id: "function.removed", object: "procedure `lending`.`hidden`", from: 80, sure: true},
		{make: []string{"CREATE PROCEDURE lending.where_is(g GEOMETRY) SELECT AsText(g)"}, id: "function.removed", object: "procedure `lending`.`where_is`", from: 80, sure: true},
		{make: []string{"CREATE PROCEDURE lending.sorted() SELECT shelf, COUNT(*) FROM lending.copy_of GROUP BY shelf DESC"}, id: "syntax.group_by", object: "procedure `lending`.`sorted`", from: 80, sure: true},
		{make: []string{"CREATE PROCEDURE lending.counted() SELECT SQL_CALC_FOUND_ROWS * FROM lending.title LIMIT 1"}, id: "syntax.found_rows", object: "procedure `lending`.`counted`", from: 97},
		{make: []string{"CREATE PROCEDURE lending.cached() SELECT SQL_CACHE COUNT(*) FROM lending.title"}, id: "syntax.sql_cache", object: "procedure `lending`.`cached`", from: 80, sure: true},
		{make: []string{"CREATE PROCEDURE lending.newcomer() GRANT SELECT ON lending.* TO clerk@localhost IDENTIFIED BY 'x'"}, id: "syntax.grant", object: "procedure `lending`.`newcomer`", from: 80, sure: true},
		{make: []string{"CREATE PROCEDURE lending.old_mode() SELECT 1"}, id: "object.sql_mode", object: "procedure `lending`.`old_mode`", from: 80, sure: true},
		{make: []string{"CREATE TABLE lending.measured (id INT PRIMARY KEY, f FLOAT(7,3), g DOUBLE(9,2))"}, id: "column.float_digits", object: "`lending`.`measured`.`f`", from: 97},
		{make: []string{"CREATE TABLE lending.float_id (id FLOAT NOT NULL AUTO_INCREMENT PRIMARY KEY)"}, id: "column.float_auto", object: "`lending`.`float_id`.`id`", from: 97, sure: true},
		{make: []string{"CREATE TABLE lending.place (id INT PRIMARY KEY, at_ POINT NOT NULL, SPATIAL KEY at_ (at_))"}, id: "column.srid", object: "`lending`.`place`.`at_`", from: 80},
		{make: []string{"CREATE TABLE lending.parent (id INT PRIMARY KEY, code INT, KEY code (code))", "CREATE TABLE lending.child (id INT PRIMARY KEY, code INT, CONSTRAINT loose FOREIGN KEY (code) REFERENCES lending.parent (code))"}, id: "foreign_key.not_unique", object: "`lending`.`child`", from: 97, sure: true},
		{make: []string{"CREATE TABLE lending.by_prefix (a VARCHAR(40) NOT NULL, b INT NOT NULL, PRIMARY KEY (a(10), b)) PARTITION BY KEY () PARTITIONS 2"}, id: "partition.prefix", object: "`lending`.`by_prefix`", from: 97, sure: true},
		{make: []string{"CREATE TABLESPACE shared ADD DATAFILE 'shared.ibd' ENGINE = InnoDB", "CREATE TABLE lending.in_shared (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2"}, id: "", object: "", from: 0},
		{make: []string{"CREATE TABLE lending.`$price` (id INT PRIMARY KEY)"}, id: "name.dollar", object: "`lending`.`$price`", from: 97},
		{make: []string{"CREATE TABLE lending.FTS_films (id INT PRIMARY KEY)"}, id: "name.fts", object: "`lending`.`FTS_films`", from: 80},
		{make: []string{"CREATE TABLE lending.filled (id INT PRIMARY KEY, n INT(5) ZEROFILL)"}, id: "column.zerofill", object: "`lending`.`filled`.`n`", from: 97},
		{make: []string{"CREATE PROCEDURE lending.dotted() SELECT * FROM .title"}, id: "object.refused", object: "procedure `lending`.`dotted`", from: 80, sure: true},
		{make: []string{"SET foreign_key_checks = 0", "CREATE TABLE lending.flat (id INT PRIMARY KEY) ENGINE = MyISAM", "CREATE TABLE lending.to_flat (id INT PRIMARY KEY, f INT, CONSTRAINT flat FOREIGN KEY (f) REFERENCES lending.flat (id))", "SET foreign_key_checks = 1"}, id: "object.refused", object: "`lending`.`to_flat`", from: 80, sure: true},
		{make: []string{"CREATE TABLE lending.made (id INT PRIMARY KEY, n VARCHAR(9), c CHAR(9) GENERATED ALWAYS AS (CAST(n AS CHAR(9))) STORED)"}, id: "column.generated_cast", object: "`lending`.`made`.`c`", from: 97},
		{make: []string{"CREATE PROCEDURE lending.lost() SELECT 1", "UPDATE mysql.proc SET db = 'nowhere' WHERE name = 'lost'"}, id: "object.orphan", object: "procedure `nowhere`.`lost`", from: 80},
		{make: []string{"CREATE TABLE mysql.parameters (id INT PRIMARY KEY)"}, id: "name.system", object: "`mysql`.`parameters`", from: 80},
		{make: []string{"CREATE USER clerk@localhost IDENTIFIED WITH mysql_native_password BY 'x9-Clerk'"}, id: "account.plugin", object: "'clerk'@'localhost'", from: 97, sure: true},
	}
}
