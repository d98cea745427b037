package sqltext

import "testing"

func TestMergeTables(t *testing.T) {
	for in, want := range map[string]string{
		"SELECT address1 FROM orders_1 WHERE orders_1.id = 5":                       "select address1 from orders_? where orders_?.id = ?",
		"SELECT * FROM t_202601 JOIN `db17`.`log_5d41402abc4b2a76b9719d911017c592`": "select * from t_? join `db?`.`log_?`",
		"INSERT INTO t1 (c1) VALUES (1)":                                            "insert into t? (c1) values(?+)",
		"UPDATE facade SET a = 1 WHERE t1 = 2":                                      "update facade set a = ? where t1 = ?",
		"DELETE FROM cache_0a1b2c3d":                                                "delete from cache_?",
		"SELECT md5(a), utf8mb4 FROM t":                                             "select md5(a), utf8mb4 from t",
		"SELECT * FROM orders_10, orders_1":                                         "select * from orders_?, orders_?",
	} {
		if got := string(MergeTables([]byte(Fingerprint(in)))); got != want {
			t.Errorf("%s\n is %s\nnot %s", in, got, want)
		}
	}
}
