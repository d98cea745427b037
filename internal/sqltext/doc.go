// Package sqltext reads statements of MySQL and MariaDB as text: what class a statement is of, which tables it
// names, whether it only reads, and how it looks without its literals. It does no IO and needs no server.
//
// The rules are those of the servers' own lexers (MySQL: sql/sql_lex.cc, "Lexical structure" in the manual;
// MariaDB: Knowledge Base, "SQL Language Structure"). Two things a text alone cannot tell are taken at their
// defaults: a double-quoted text is a string (sql_mode without ANSI_QUOTES) and a backslash escapes (sql_mode
// without NO_BACKSLASH_ESCAPES). docs/fingerprints.md has the rules of the fingerprint in plain words.
package sqltext
