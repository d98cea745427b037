package sqltext

import "bytes"

// unions finds UNIONs that repeat one arm. Its buffers are kept.
type unions struct {
	arm   []int // per depth of parentheses, where the SELECT of the current arm begins; -1: none yet
	group []int // per depth, where the last parenthesis opened
	buf   []byte
}

// maxUnionDepth is how deep UNIONs are looked for; deeper, the statement stays as it is.
const maxUnionDepth = 1000

// collapse writes `/*repeat union*/` (or `union all`) for arms that equal the one before them.
// An arm counts as equal only when it ends where the other does: what follows must end the UNION.
func (u *unions) collapse(t []byte, base int) []byte {
	u.arm, u.group, u.buf = append(u.arm[:0], -1), append(u.group[:0], -1), u.buf[:0]
	copied, depth := base, 0
	for i := base; i < len(t); {
		switch c := t[i]; {
		case c == '`':
			i = stringEnd(t, i)
		case c == '(':
			if depth++; depth > maxUnionDepth {
				return t
			}
			u.group[depth-1] = i
			u.arm, u.group = append(u.arm[:depth], -1), append(u.group[:depth], -1)
			i++
		case c == ')':
			depth = max(depth-1, 0)
			i++
		case isWord(c):
			end := wordEnd(t, i)
			switch string(t[i:end]) {
			case "select":
				if u.arm[depth] < 0 {
					u.arm[depth] = i
				}
			case "union":
				next, kind := u.repeats(t, i, end, depth, base)
				if next > i {
					u.buf = append(append(append(append(u.buf, t[copied:i]...), "/*repeat union"...), kind...), "*/"...)
					copied, end = next, next
				} else {
					u.arm[depth] = -1
				}
			}
			i = end
		default:
			i++
		}
	}
	if copied == base {
		return t
	}
	u.buf = append(u.buf, t[copied:]...)
	return append(t[:base], u.buf...)
}

// repeats returns the place after the arms that, from the UNION at i, repeat the arm before it (i: none), and of which
// kind the last of these UNIONs is: "", " all" or " distinct".
func (u *unions) repeats(t []byte, i, after, depth, base int) (end int, kind string) {
	start := u.arm[depth]
	arm := bytes.TrimRight(t[base:i], " ")
	if start < 0 {
		if start = u.group[depth]; start < 0 || arm[len(arm)-1] != ')' {
			return i, ""
		}
	}
	arm = t[start : base+len(arm)]
	for end = i; ; {
		k, next := spaces(t, after), ""
		for _, w := range []string{"all", "distinct"} {
			if n, ok := cutWord(t[k:], w); ok {
				k, next = spaces(t, k+n), " "+w
			}
		}
		if !bytes.HasPrefix(t[k:], arm) || !endsArm(t[k+len(arm):]) {
			return end, kind
		}
		end, kind = k+len(arm), next
		k = spaces(t, end)
		w, ok := cutWord(t[k:], "union")
		if !ok {
			return end, kind
		}
		after = k + w
	}
}

func spaces(t []byte, i int) int {
	for i < len(t) && t[i] == ' ' {
		i++
	}
	return i
}

// endsArm reports whether an arm of a UNION can end before rest.
func endsArm(rest []byte) bool {
	k := spaces(rest, 0)
	if k == len(rest) {
		return true
	}
	switch c := rest[k]; {
	case c == ')' || c == ';':
		return true
	case c == '/' || c == '*':
		return k > 0
	case !isWord(c):
		return false
	}
	if k == 0 && !isWord(rest[0]) {
		return false
	}
	switch string(rest[k:wordEnd(rest, k)]) {
	case "union", "order", "limit", "for", "into", "lock", "on", "procedure", "returning", "except", "intersect":
		return k > 0
	}
	return false
}

// mergeNumbered makes ? of the digits at the end of each part of the names in a fingerprint.
func mergeNumbered(t []byte, base int) []byte {
	o := base
	for i := base; i < len(t); {
		if !isDigit(t[i]) {
			t[o] = t[i]
			o++
			i++
			continue
		}
		start := i
		for i < len(t) && isDigit(t[i]) {
			i++
		}
		if start > base && isWord(t[start-1]) && (i == len(t) || !isWord(t[i]) || t[i] == '_') {
			t[o] = '?'
			o++
			continue
		}
		o += copy(t[o:], t[start:i])
	}
	return t[:o]
}
