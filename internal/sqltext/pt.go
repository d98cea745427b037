package sqltext

import (
	"bytes"
	"regexp"

	"github.com/rissodb/risso/internal/pattern"
)

// PtID returns the identity that pt-query-digest 3.7.1 prints for a statement, without its "0x".
func PtID(stmt string) string { return ClassID(ptFingerprint([]byte(stmt))) }

// The patterns work on bytes: that program does not decode. (?s-i) and so on are as there.
var (
	ptToolkit  = pattern.Lazy(`/\*\w+\.\w+:[0-9]/[0-9]\*/`)
	ptCall     = pattern.Lazy(`(?i)\A\s*(call\s+\S+)\(`)
	ptRows     = pattern.Lazy(`(?is)\A((?:INSERT|REPLACE)(?: IGNORE)?\s+INTO.+?VALUES\s*\(.*?\))\s*,\s*\(`)
	ptComment  = pattern.Lazy(`(?s)/\*[^!].*?\*/`)
	ptUse      = pattern.Lazy(`(?i)\Ause \S+(\n?)\z`)
	ptEscaped1 = pattern.Lazy(`([^\\])\\'`)
	ptEscaped2 = pattern.Lazy(`([^\\])\\"`)
	ptEscaped  = pattern.Lazy(`\\['"]`)
	ptDouble   = pattern.Lazy(`(?s)([^\\])".*?[^\\]?"`)
	ptSingle   = pattern.Lazy(`(?s)([^\\])'.*?[^\\]?'`)
	ptBool     = pattern.Lazy(`(?is)\bfalse\b|\btrue\b`)
	ptNumber   = pattern.Lazy(`[0-9+-][0-9a-f.xb+-]*`)
	ptPrefix   = pattern.Lazy(`[xb.+-]\?`)
	ptLeading  = pattern.Lazy(`\A[\s\v]+`)
	ptBlanks   = pattern.Lazy(`[ \n\t\r\f]+`)
	ptNull     = pattern.Lazy(`\bnull\b`)
	ptList     = pattern.Lazy(`\b(in|values?)(?:[\s,]*\([\s?,]*\))+`)
	ptLimit    = pattern.Lazy(`\blimit \?(?:, ?\?| offset \?)?`)
	ptOrder    = pattern.Lazy(`(?i)\bORDER BY `)
	ptAsc      = pattern.Lazy(`(?i)(.+?)\s+ASC`)
	ptSelect   = pattern.Lazy(`\bselect\s`)
	ptUnion    = pattern.Lazy(`\sunion(?:\sall)?\s`)
	ptQuestion = []byte("?")
)

// ptFingerprint returns the fingerprint that pt-query-digest 3.7.1 makes of a statement, by that program's own rules
// and with all of their faults, so that a class can be found under the name it has there. The rules are those its
// manual lists under "fingerprint" and its code follows (QueryRewriter); versions up to 3.5.1 read some strings in
// another way, as docs/fingerprints.md explains. It is for one sample of a class, not for each statement: it is slow.
func ptFingerprint(q []byte) []byte {
	switch {
	case bytes.HasPrefix(q, []byte("SELECT /*!40001 SQL_NO_CACHE */ * FROM `")):
		return []byte("mysqldump")
	case ptToolkit().Match(q):
		return []byte("percona-toolkit")
	case bytes.HasPrefix(q, []byte("administrator command: ")):
		return q
	}
	if m := ptCall().FindSubmatch(q); m != nil {
		return lowerAll(m[1])
	}
	if m := ptRows().FindSubmatch(q); m != nil {
		q = m[1]
	}
	q = ptComment().ReplaceAll(q, nil)
	q = ptLineComments(q)
	if ptUse().Match(q) {
		return ptUse().ReplaceAll(q, []byte("use ?$1"))
	}
	q = ptEscaped1().ReplaceAll(q, []byte("$1"))
	q = ptEscaped2().ReplaceAll(q, []byte("$1"))
	q = bytes.ReplaceAll(q, []byte(`\\`), nil)
	q = ptEscaped().ReplaceAll(q, nil)
	q = ptDouble().ReplaceAll(q, []byte("$1?"))
	q = ptSingle().ReplaceAll(q, []byte("$1?"))
	for _, re := range []func() *regexp.Regexp{ptBool, ptNumber, ptPrefix} {
		q = re().ReplaceAll(q, ptQuestion)
	}
	q = ptLeading().ReplaceAll(q, nil)
	q = bytes.TrimSuffix(q, []byte("\n"))
	q = lowerAll(ptBlanks().ReplaceAll(q, []byte(" ")))
	q = ptNull().ReplaceAll(q, ptQuestion)
	q = ptList().ReplaceAll(q, []byte("${1}(?+)"))
	q = ptUnions(q)
	if m := ptLimit().FindIndex(q); m != nil {
		q = append(append(bytes.Clone(q[:m[0]]), "limit ?"...), q[m[1]:]...)
	}
	if m := ptOrder().FindIndex(q); m != nil {
		q = append(bytes.Clone(q[:m[1]]), ptAsc().ReplaceAll(q[m[1]:], []byte("$1"))...)
	}
	return q
}

func lowerAll(b []byte) []byte {
	b = bytes.Clone(b)
	for i, c := range b {
		b[i] = lower(c)
	}
	return b
}

// ptLineComments removes from -- and # to the line end, if there is no quote in between.
func ptLineComments(q []byte) []byte {
	out := make([]byte, 0, len(q))
	quote := -1 // where the next quote of this line is, so that a line is searched once
	for i := 0; i < len(q); {
		if q[i] != '#' && (q[i] != '-' || i+1 == len(q) || q[i+1] != '-') {
			out = append(out, q[i])
			i++
			continue
		}
		if quote >= i {
			out = append(out, q[i])
			i++
			continue
		}
		end := i
		for end < len(q) && q[end] != '\'' && q[end] != '"' && q[end] != '\r' && q[end] != '\n' {
			end++
		}
		if end < len(q) && (q[end] == '\'' || q[end] == '"') {
			quote = end
			continue
		}
		i = end
	}
	return out
}

// ptUnionWork bounds the bytes compared in search of repeated UNIONs; that program's pattern has no bound.
const ptUnionWork = 1 << 24

// ptUnions writes /*repeat union*/ for a SELECT that is followed by UNION and the same text once more, or more often.
// That text need not be a whole SELECT: it is the shortest beginning that repeats.
func ptUnions(q []byte) []byte {
	unions := ptUnion().FindAllIndex(q, -1)
	if len(unions) == 0 {
		return q
	}
	var out []byte
	copied, work := 0, ptUnionWork
	first := 0 // of unions, those that may follow
	for _, sel := range ptSelect().FindAllIndex(q, -1) {
		start := sel[0]
		if start < copied {
			continue
		}
		for first < len(unions) && unions[first][0] < sel[1] {
			first++
		}
		for _, u := range unions[first:] {
			x := q[start:u[0]]
			if !bytes.HasPrefix(q[u[1]:], x[:min(len(x), 16)]) {
				work -= 16
			} else if work -= len(x); work > 0 && bytes.HasPrefix(q[u[1]:], x) {
				end, kind := u[1]+len(x), q[u[0]:u[1]-1]
				for {
					m := ptUnion().FindIndex(q[end:min(len(q), end+16)])
					if m == nil || m[0] != 0 || !bytes.HasPrefix(q[end+m[1]:], x) {
						break
					}
					kind = q[end : end+m[1]-1]
					end += m[1] + len(x)
				}
				out = append(append(append(append(out, q[copied:u[0]]...), " /*repeat"...), kind...), "*/"...)
				copied = end
				break
			}
			if work <= 0 {
				return append(out, q[copied:]...)
			}
		}
	}
	return append(out, q[copied:]...)
}
