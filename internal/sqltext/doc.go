// Package sqltext reads SQL of MySQL and MariaDB as text: what class a statement is of, which tables it names, whether it
// only reads, how it looks without its literals, what a CREATE, ALTER or GRANT is about. It does no IO and needs no server.
// Whoever has to know where a string, a name or a comment ends asks here: Dialect's tokens, joined, are the text.
//
// The rules are those of the servers' own lexers (MySQL: sql/sql_lex.cc, "Lexical structure" in the manual;
// MariaDB: Knowledge Base, "SQL Language Structure"). What a text alone cannot tell stands in a Dialect. Fingerprints and
// what else takes none have its defaults: a double-quoted text is a string (sql_mode without ANSI_QUOTES) and a backslash
// escapes (sql_mode without NO_BACKSLASH_ESCAPES). docs/fingerprints.md has the rules of the fingerprint in plain words.
package sqltext
