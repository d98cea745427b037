package sqltext

import "bytes"

// MergeTables is a fingerprint in which tables and schemas whose names differ in numbers or hashes only have one name:
// orders_1, orders_2 and orders_202601 are orders_?, and so is orders_ followed by an MD5. All else stays.
func MergeTables(fingerprint []byte) []byte {
	out := fingerprint
	done := map[string]bool{}
	for _, t := range Tables(fingerprint) {
		for _, name := range []string{t.Schema, t.Name} {
			if name == "" || done[name] {
				continue
			}
			done[name] = true
			if m := mergedName(name); m != name {
				out = replaceName(out, []byte(name), []byte(m))
			}
		}
	}
	return out
}

// hashLen is how many hexadecimal digits a part of a name has at least that is taken for a hash: those of a CRC32.
const hashLen = 8

// mergedName is a name with "?" in place of each number and each hash.
func mergedName(name string) string {
	var out []byte
	for i := 0; i < len(name); {
		end := i
		for end < len(name) && isWordPart(name[end]) {
			end++
		}
		if part := name[i:end]; isHash(part) {
			out = append(out, '?')
		} else {
			out = appendWithoutNumbers(out, part)
		}
		if end < len(name) {
			out = append(out, name[end])
			end++
		}
		i = end
	}
	return string(out)
}

func isWordPart(c byte) bool { return c >= 0x80 || isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }

// isHash recognizes a part of a name that is of hexadecimal digits, long enough, and no word.
func isHash(s string) bool {
	digits := 0
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(c):
			digits++
		case c|0x20 < 'a' || c|0x20 > 'f':
			return false
		}
	}
	return len(s) >= hashLen && digits > 0
}

func appendWithoutNumbers(out []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			out = append(out, s[i])
		} else if i == 0 || !isDigit(s[i-1]) {
			out = append(out, '?')
		}
	}
	return out
}

// replaceName replaces a name where it occurs as a whole.
func replaceName(text, name, with []byte) []byte {
	var out []byte
	for i := 0; ; {
		n := bytes.Index(text[i:], name)
		if n < 0 {
			return append(out, text[i:]...)
		}
		at, end := i+n, i+n+len(name)
		out = append(out, text[i:at]...)
		if at > 0 && isNamePart(text[at-1]) || end < len(text) && isNamePart(text[end]) {
			out = append(out, name...)
		} else {
			out = append(out, with...)
		}
		i = end
	}
}

func isNamePart(c byte) bool { return isWordPart(c) || c == '_' || c == '$' }
