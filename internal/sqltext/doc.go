// Package sqltext reads SQL of MySQL and MariaDB as text: the class of a statement, which tables it names, whether it
// only reads, what it looks like without its literals, what a CREATE, ALTER or GRANT is about. It does no IO and needs no server.
// Use it to find where a string, a name or a comment ends: Dialect's tokens, joined, are the text.
//
// The rules are those of the servers' own lexers (MySQL: sql/sql_lex.cc, "Lexical structure" in the manual;
// MariaDB: Knowledge Base, "SQL Language Structure"). What a text alone cannot tell is in a Dialect. Fingerprints and other
// functions without one use its defaults: a double-quoted text is a string (sql_mode without ANSI_QUOTES) and a backslash
// escapes (sql_mode without NO_BACKSLASH_ESCAPES). docs/fingerprints.md has the rules of the fingerprint in plain words.
package sqltext
