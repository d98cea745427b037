package load

import (
	"slices"
	"strings"
)

// collation is what a collation's name says about it.
type collation struct {
	charset  string
	language string // MariaDB's word for it; "" for the root, which belongs to no language
	kind     string // what it distinguishes: ai_ci, as_ci, as_cs and so on; bin
	noPad    bool   // it distinguishes 'a' from 'a '
}

// codes are MySQL's names of languages in its collations of UCA 9.0, by the older words that both flavours have. Several have no word of their own;
// Norwegian has the letters of Danish, Bosnian and Serbian in Latin those of Croatian, Galician those of Spanish. Sources: MySQL manual, "Unicode Character Sets";
// MariaDB documentation, "Supported Character Sets and Collations".
var codes = map[string]string{"cs": "czech", "da": "danish", "nb": "danish", "nn": "danish", "de_pb": "german2", "eo": "esperanto", "es": "spanish", "gl": "spanish", "es_trad": "spanish2",
	"et": "estonian", "hr": "croatian", "bs": "croatian", "sr_latn": "croatian", "hu": "hungarian", "is": "icelandic", "la": "roman", "lt": "lithuanian", "lv": "latvian", "pl": "polish", "ro": "romanian", "sk": "slovak",
	"sl": "slovenian", "sv": "swedish", "tr": "turkish", "vi": "vietnamese"}

// codeOf are the codes of the words, of those that share one the first.
var codeOf = func() map[string]string {
	out := map[string]string{}
	for code, word := range codes {
		if has, ok := out[word]; !ok || slices.Contains([]string{"nb", "nn", "gl", "bs", "sr_latn"}, has) {
			out[word] = code
		}
	}
	return out
}()

// readCollation reads a name: MySQL's of UCA 9.0 (utf8mb4_sv_0900_ai_ci), MariaDB's of UCA 14.0 (utf8mb4_uca1400_swedish_nopad_ai_ci), and those of
// older versions of both (utf8mb4_swedish_ci, utf8mb4_unicode_520_nopad_ci).
func readCollation(name string) collation {
	c := collation{charset: "utf8mb4", kind: "ai_ci"}
	parts := strings.Split(name, "_")
	if parts[0] != "uca1400" {
		c.charset, parts = parts[0], parts[1:]
	}
	if i := slices.Index(parts, "nopad"); i >= 0 {
		c.noPad, parts = true, slices.Delete(parts, i, i+1)
	}
	if i := slices.Index(parts, "0900"); i >= 0 {
		c.noPad, c.kind = true, strings.Join(parts[i+1:], "_")
		code := strings.Join(parts[:i], "_")
		if c.language = code; codes[code] != "" {
			c.language = codes[code]
		}
		return c
	}
	if len(parts) > 0 && (parts[0] == "uca1400" || parts[0] == "general1400") {
		if i := slices.IndexFunc(parts, func(p string) bool { return p == "ai" || p == "as" }); i > 0 {
			c.kind, parts = strings.Join(parts[i:], "_"), parts[1:i]
		}
	} else if len(parts) > 0 {
		if last := len(parts) - 1; parts[last] == "bin" {
			c.kind = "bin"
		}
		parts = parts[:len(parts)-1]
		if len(parts) > 0 && (parts[0] == "unicode" || parts[0] == "general") {
			parts = nil
		}
	}
	c.language = strings.Join(parts, "_")
	return c
}

// otherName returns a replacement for a character set or collation that the target does not know. safe says that it is the same
// under another name.
func otherName(name string, known map[string]bool) (to string, safe bool) {
	if rest, ok := strings.CutPrefix(name, "utf8mb3"); ok && known["utf8"+rest] {
		return "utf8" + rest, true
	}
	if rest, ok := strings.CutPrefix(name, "utf8_"); ok && known["utf8mb3_"+rest] {
		return "utf8mb3_" + rest, true
	}
	if name == "utf8" && known["utf8mb3"] {
		return "utf8mb3", true
	}
	if rest, ok := strings.CutSuffix(name, "_croatian_mysql561_ci"); ok && known[rest+"_croatian_ci"] { // which only MariaDB has
		return rest + "_croatian_ci", true
	}
	if charset, kind, ok := strings.Cut(name, "_uca1400_"); ok && charset != "utf8mb4" { // MariaDB's default of every set of Unicode since 11.5
		return ofUnicode(charset, kind, known), false
	}
	if !strings.HasPrefix(name, "utf8mb4_") && !strings.HasPrefix(name, "uca1400_") {
		return "", false
	}
	return oneOf(known, readCollation(name).nearest()...), false
}

// nearest are the collations of utf8mb4 that may replace one, the best first. One that distinguishes fewer strings may break unique keys: so a
// language goes before what a blank at the end means, and if no collation has the language its letters are distinguished by their accents.
// MySQL's collations of UCA 9.0 and MariaDB's of UCA 14.0 compare alike except for new scripts; both differ from UCA 5.2 in little, which
// every server has.
func (c collation) nearest() (names []string) {
	if c.kind == "bin" {
		if c.noPad {
			names = []string{"utf8mb4_0900_bin", "utf8mb4_nopad_bin"}
		}
		return append(names, "utf8mb4_bin")
	}
	kinds := map[string][]string{"ai_ci": {"ai_ci"}, "as_ci": {"as_ci", "as_cs"}, "ai_cs": {"ai_cs", "as_cs"}}[c.kind]
	if kinds == nil { // as_cs, even if it distinguishes more, such as two ways to write Japanese
		kinds = []string{"as_cs"}
	}
	if c.language != "" {
		names = append(names, c.ofLanguage(c.language, kinds)...)
		if c.kind == "ai_ci" {
			names = append(names, c.ofLanguage("", []string{"as_ci"})...)
		}
	}
	names = append(names, c.ofLanguage("", kinds)...)
	if strings.Contains(c.kind, "_cs") {
		if c.noPad {
			names = append(names, "utf8mb4_nopad_bin")
		}
		names = append(names, "utf8mb4_bin")
	}
	return names
}

// ofLanguage are those of one language, or of the root.
func (c collation) ofLanguage(language string, kinds []string) (names []string) {
	code, word := "", ""
	if language != "" {
		code, word = codeOf[language], language+"_"
		if code == "" {
			code = language
		}
		code += "_"
	}
	noPad, pad := []string{}, []string{}
	for _, kind := range kinds {
		noPad = append(noPad, "utf8mb4_"+code+"0900_"+kind, "utf8mb4_uca1400_"+word+"nopad_"+kind)
		pad = append(pad, "utf8mb4_uca1400_"+word+kind)
		if kind != "ai_ci" {
			continue
		}
		if language == "" {
			noPad, pad = append(noPad, "utf8mb4_unicode_520_nopad_ci"), append(pad, "utf8mb4_unicode_520_ci", "utf8mb4_unicode_ci")
		} else {
			pad = append(pad, "utf8mb4_"+word+"ci")
		}
	}
	if c.noPad {
		return append(noPad, pad...)
	}
	return append(pad, noPad...)
}

// ofUnicode returns a replacement for a collation of UCA 14 (charset_uca1400_kind) in a set that is not utf8mb4. One that distinguishes fewer
// strings would break unique keys, so kinds that distinguish case or accents become binary, or nothing.
func ofUnicode(charset, kind string, known map[string]bool) string {
	kind, noPad := strings.CutPrefix(kind, "nopad_")
	pad := map[bool]string{true: "nopad_"}[noPad]
	var names []string
	for _, set := range []string{charset, map[string]string{"utf8mb3": "utf8"}[charset]} {
		switch {
		case set == "":
		case kind == "ai_ci":
			names = append(names, set+"_unicode_520_"+pad+"ci", set+"_unicode_"+pad+"ci", set+"_unicode_520_ci", set+"_unicode_ci")
		case strings.HasSuffix(kind, "_cs"):
			names = append(names, set+"_"+pad+"bin", set+"_bin")
		case strings.HasSuffix(kind, "_ai_ci"): // of a language
			names = append(names, set+"_"+strings.TrimSuffix(strings.TrimSuffix(kind, "_ai_ci"), "_nopad")+"_ci")
		}
	}
	return oneOf(known, names...)
}

// oneOf is the first name that is known; "" when none is.
func oneOf(known map[string]bool, names ...string) string {
	for _, n := range names {
		if known[n] {
			return n
		}
	}
	return ""
}
