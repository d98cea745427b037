package trial_test

import (
	"fmt"

	"github.com/rissodb/risso/internal/explain/differ/trial"
)

// filled are statements that give the shop rows: some 100,000 loans, always the same.
func filled() []string {
	numbers := "(SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n AS n FROM digit a, digit b, digit c, digit d, digit e)"
	few := "(SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n AS n FROM digit a, digit b, digit c, digit d)"
	return []string{
		"USE lending", "SET foreign_key_checks = 0, unique_checks = 0",
		"CREATE TABLE digit (n INT PRIMARY KEY)", "INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
		"INSERT INTO person (person_id, given, family) SELECT n + 1, CONCAT('g', n % 50), CONCAT('f', n % 500) FROM " + few + " x ORDER BY n",
		"INSERT INTO title (title_id, name, made, rating) SELECT n + 1, CONCAT('title ', n), 1970 + n % 50, ELT(1 + n % 3, 'G', 'PG', 'R') FROM " + few + " x WHERE n < 2000 ORDER BY n",
		"INSERT INTO copy_of (copy_id, title_id, shelf) SELECT n + 1, 1 + n % 2000, n % 40 FROM " + few + " x ORDER BY n",
		"INSERT INTO loan (loan_id, copy_id, person_id, taken, back) SELECT n + 1, 1 + n * 7 % 10000, 1 + n * 13 % 10000, '2020-01-01' + INTERVAL n MINUTE, IF(n % 50 = 0, NULL, '2020-03-01') FROM " + numbers + " x ORDER BY n",
		"CREATE INDEX taken ON loan (taken)",
		"ANALYZE TABLE person, title, copy_of, loan",
	}
}

// asked are statements over it: those that statistics are enough to plan, and some that need rows.
func asked() (list []trial.Statement) {
	for i, q := range []string{
		"SELECT * FROM loan WHERE person_id = 77",
		"SELECT * FROM loan WHERE copy_id = 12 ORDER BY taken",
		"SELECT COUNT(*) FROM loan",
		"SELECT person_id, COUNT(*) FROM loan GROUP BY person_id",
		"SELECT copy_id, MAX(taken) FROM loan GROUP BY copy_id",
		"SELECT back, COUNT(*) FROM loan GROUP BY back",
		"SELECT * FROM loan WHERE back IS NULL",
		"SELECT * FROM loan ORDER BY taken DESC LIMIT 10",
		"SELECT * FROM loan ORDER BY back LIMIT 10",
		"SELECT * FROM loan WHERE person_id IN (1, 2, 3)",
		"SELECT DISTINCT shelf FROM copy_of",
		"SELECT * FROM copy_of WHERE title_id = 9",
		"SELECT p.family FROM loan l JOIN person p ON p.person_id = l.person_id WHERE l.copy_id = 3",
		"SELECT t.name FROM copy_of c JOIN title t ON t.title_id = c.title_id WHERE c.shelf = 3",
		"SELECT t.name, COUNT(*) FROM loan l JOIN copy_of c ON c.copy_id = l.copy_id JOIN title t ON t.title_id = c.title_id GROUP BY t.name",
		"SELECT * FROM person WHERE family = 'f7'",
		"SELECT * FROM person WHERE family = 'f7' AND given = 'g7'",
		"SELECT * FROM person WHERE given = 'g7'",
		"SELECT family, COUNT(*) FROM person GROUP BY family",
		"SELECT * FROM person p WHERE EXISTS (SELECT 1 FROM loan l WHERE l.person_id = p.person_id AND l.back IS NULL)",
		"SELECT * FROM person WHERE person_id NOT IN (SELECT person_id FROM loan)",
		"SELECT * FROM title WHERE rating = 'R' ORDER BY name",
		"SELECT x.n FROM (SELECT person_id, COUNT(*) AS n FROM loan GROUP BY person_id) x WHERE x.n > 20",
		"SELECT given FROM person WHERE family = 'f1' UNION SELECT name FROM title WHERE made = 1980",
		"SELECT l.* FROM loan l LEFT JOIN person p ON p.person_id = l.person_id WHERE p.person_id IS NULL",
		"UPDATE loan SET back = '2020-04-01' WHERE person_id = 5",
		"DELETE FROM copy_of WHERE title_id = 4",
		"SELECT name FROM title WHERE title_id = 7",
		"SELECT * FROM loan WHERE taken BETWEEN '2020-01-05' AND '2020-02-20'",
		"SELECT * FROM loan WHERE loan_id > 90000",
		"SELECT p.family FROM person p JOIN loan l ON l.person_id = p.person_id WHERE p.person_id = 9",
	} {
		list = append(list, trial.Statement{Class: fmt.Sprintf("class %d", i+1), SQL: q, Database: "lending", Calls: 1})
	}
	return list
}
