CREATE DATABASE sale DEFAULT CHARACTER SET latin1; USE sale;
CREATE TABLE digits (d INT NOT NULL PRIMARY KEY);
INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
CREATE TABLE numbers (n INT NOT NULL PRIMARY KEY);
INSERT INTO numbers SELECT 1 + a.d + 10*b.d + 100*c.d + 1000*e.d + 10000*f.d n FROM digits a, digits b, digits c, digits e, digits f WHERE f.d < 3 ORDER BY n;
CREATE TABLE orders (id INT NOT NULL PRIMARY KEY, customer INT NOT NULL, shop INT NOT NULL, paid TINYINT NOT NULL, status TINYINT NOT NULL, state VARCHAR(8) NOT NULL,
 amount INT NOT NULL, placed DATETIME NOT NULL, created DATETIME NOT NULL, shipped DATETIME, code VARCHAR(20) NOT NULL, ref VARCHAR(20) NOT NULL, email VARCHAR(60) NOT NULL,
 note VARCHAR(250) NOT NULL, body TEXT NOT NULL, data JSON, UNIQUE KEY email (email), KEY shop (shop));
INSERT INTO orders SELECT n, (n*7919)%2000, (n*31)%20, n%2, IF(n%100 < 95, 4, ELT(n%100-94, 0, 1, 2, 3, 5)), IF(n > 29700, 'open', 'done'),
 (n*104729)%100003, '2024-01-01' + INTERVAL (n*7919)%30000 MINUTE, '2024-01-01' + INTERVAL n MINUTE, IF(n%50 = 0, NULL, '2024-02-01' + INTERVAL n MINUTE),
 CONCAT('C', (n*13)%3000), (n*17)%6000, CONCAT('u', n, '@x.org'), CONCAT(REPEAT('x', 150), n), CONCAT('body ', n%3000, REPEAT('y', 100)), CONCAT('{"k": ', n%100, '}') FROM numbers ORDER BY n;
CREATE TABLE items (id INT NOT NULL PRIMARY KEY, order_id INT NOT NULL, product INT NOT NULL, qty INT NOT NULL, price INT NOT NULL, label VARCHAR(80) NOT NULL);
INSERT INTO items SELECT n, 1 + (n*7)%15000, (n*11)%500, n%7, (n*37)%1000, REPEAT('l', 60) FROM numbers ORDER BY n;
CREATE TABLE customers (id INT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL, country CHAR(2) NOT NULL, segment TINYINT NOT NULL, code VARCHAR(20) NOT NULL, about VARCHAR(250) NOT NULL);
INSERT INTO customers SELECT n - 1, CONCAT('name', n), CONCAT(CHAR(97 + n%25), 'x'), n%2, CONCAT('C', n), REPEAT('a', 200) FROM numbers WHERE n <= 2000 ORDER BY n;
CREATE TABLE countries (id CHAR(2) NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL, zone INT NOT NULL);
INSERT INTO countries SELECT CONCAT(CHAR(97 + n%25), 'x'), CONCAT('land', n), n%3 FROM numbers WHERE n <= 25;
CREATE TABLE visits (id INT NOT NULL, month INT NOT NULL, customer INT NOT NULL, path VARCHAR(120) NOT NULL, PRIMARY KEY (id, month))
 PARTITION BY RANGE (month) (PARTITION p3 VALUES LESS THAN (4), PARTITION p6 VALUES LESS THAN (7), PARTITION p9 VALUES LESS THAN (10), PARTITION p12 VALUES LESS THAN (13));
INSERT INTO visits SELECT n, 1 + n%12, (n*7919)%2000, CONCAT('/', REPEAT('p', 90), n) FROM numbers ORDER BY n;
CREATE TABLE pairs (a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, PRIMARY KEY (a, b));
INSERT INTO pairs SELECT n%500, n, n%9 FROM numbers ORDER BY n;
CREATE TABLE texts (id INT NOT NULL PRIMARY KEY, title VARCHAR(200) NOT NULL, place POINT NOT NULL, padding CHAR(200) NOT NULL, deleted DATETIME, FULLTEXT KEY title (title), SPATIAL KEY place (place));
INSERT INTO texts SELECT n, CONCAT('word', n%100, ' and word', n), POINT(n%100, n%77), REPEAT('t', 200), IF(n%100 = 0, '2024-01-01', NULL) FROM numbers WHERE n <= 2000 ORDER BY n;
CREATE TABLE foreigners (id INT NOT NULL PRIMARY KEY, code VARCHAR(20) NOT NULL, number VARCHAR(20) NOT NULL, name VARCHAR(20) COLLATE utf8mb4_general_ci NOT NULL, padding CHAR(100) NOT NULL, KEY code (code), KEY number (number)) DEFAULT CHARACTER SET utf8mb4;
INSERT INTO foreigners SELECT n, CONCAT('C', n), n, CONCAT('name', n), REPEAT('f', 100) FROM numbers WHERE n <= 3000 ORDER BY n;
CREATE TABLE staff (emp_no INT NOT NULL PRIMARY KEY, birth_date DATE NOT NULL, first_name VARCHAR(14) NOT NULL, last_name VARCHAR(16) NOT NULL, gender ENUM('M','F') NOT NULL, hire_date DATE NOT NULL);
INSERT INTO staff SELECT n, '1952-02-01' + INTERVAL (n*7919)%4750 DAY, CONCAT('First', (n*31)%1275), CONCAT('Last', (n*17)%1637), IF(n%5 < 3, 'M', 'F'), '1985-01-01' + INTERVAL (n*31)%5478 DAY FROM numbers WHERE n <= 5000 ORDER BY n;
CREATE TABLE wages (emp_no INT NOT NULL, salary INT NOT NULL, from_date DATE NOT NULL, to_date DATE NOT NULL, PRIMARY KEY (emp_no, from_date));
INSERT INTO wages SELECT n.n, 39000 + (n.n*7919)%90000 + d.d*1500, '1986-06-26' + INTERVAL (n.n*31)%3000 DAY + INTERVAL d.d YEAR, IF(d.d = 8, '9999-01-01', '1987-06-26' + INTERVAL (n.n*31)%3000 DAY + INTERVAL d.d YEAR) FROM numbers n, digits d WHERE d.d < 9 AND n.n <= 5000 ORDER BY n.n, d.d;
CREATE VIEW open_orders AS SELECT o.id, o.customer, o.amount, o.created, o.note FROM orders o WHERE o.state = 'open';
CREATE VIEW shop_totals AS SELECT shop, SUM(amount) total FROM orders GROUP BY shop;
ANALYZE TABLE orders, items, customers, countries, visits, pairs, texts, foreigners, staff, wages
