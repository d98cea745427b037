package sqltext

import "bytes"

// Classifier numbers statements by their fingerprint, and is several times faster than making each fingerprint: it
// keeps the texts of statements seen, in a tree, and where their literals were. A statement that differs from one of
// them in literals, lists, rows and comments only is named by comparing the text between; any other goes through a
// Fingerprinter. Both ways give the same number, which a fuzz test holds.
//
// The zero value is ready; it belongs to one goroutine. The tree is bounded (a few megabytes, then it is started over);
// all fingerprints are kept, since their numbers were handed out.
type Classifier struct {
	// MergeNumbered is that of Fingerprinter. It must not change once a statement was classified.
	MergeNumbered bool

	f      Fingerprinter
	rec    recorder
	root   *node
	size   int // of the tree in bytes, roughly
	number map[string]int
	prints []string
	buf    []byte
}

// Classify returns the number of the statement's fingerprint: 0 for the first, then 1 and so on, so that classes can be
// kept in a slice. If the result equals what Len was before, the fingerprint is new.
func (c *Classifier) Classify(stmt []byte) int {
	i := skipBlank(stmt, 0)
	if i > 0 && c.f.leading(stmt, i) == 0 {
		return c.known(c.f.Append(c.buf[:0], stmt))
	}
	s := stmt[i:]
	if c.root == nil {
		c.root = &node{class: -1}
	}
	if len(s) > 0 {
		if out, ok := special(c.buf[:0], s, 0); ok {
			return c.known(out)
		}
	}
	if n := c.root.find(s); n >= 0 {
		return n
	}
	c.f.MergeNumbered = c.MergeNumbered
	c.rec.reset()
	n := c.known(c.f.append(c.buf[:0], s, &c.rec))
	if !c.rec.unsure && c.rec.fixed(len(s)) <= maxTemplate {
		if c.size > maxTree {
			c.root, c.size = &node{class: -1}, 0
		}
		c.size += c.root.insert(s, c.rec.marks, n)
	}
	return n
}

// Len is how many fingerprints have a number.
func (c *Classifier) Len() int { return len(c.prints) }

// Fingerprint returns the fingerprint of a number that Classify returned.
func (c *Classifier) Fingerprint(n int) string { return c.prints[n] }

func (c *Classifier) known(fp []byte) int {
	c.buf = fp[:0]
	if n, ok := c.number[string(fp)]; ok {
		return n
	}
	if c.number == nil {
		c.number = map[string]int{}
	}
	n, text := len(c.prints), string(fp)
	c.number[text] = n
	c.prints = append(c.prints, text)
	if cap(c.buf) > maxTree { // of one enormous statement; the next need not carry it
		c.buf = nil
	}
	return n
}

const (
	maxTemplate = 16 << 10 // bytes between the literals of a statement that is put into the tree
	maxTree     = 8 << 20  // bytes of the tree, at which it is started over
)

// Kinds of what may differ between statements of one class.
const (
	elLiteral = iota
	elSigned  // a literal that may have a sign
	elList    // the list of IN
	elValues  // rows of VALUES, all literals; where VALUES is no function, more rows of any kind
	elRow     // the same with ROW
	elFuncVal // rows of literals where VALUES may be a function
	elRows    // the rows after the first, where that holds more than literals
	elLimit
	elComment
)

// mark is one such place.
type mark struct {
	kind       uint8
	start, end int
}

// recorder notes the marks of a statement while its fingerprint is made.
type recorder struct {
	marks  []mark
	sign   int  // where a sign was dropped that belongs to the literal to come; -1: none
	unsure bool // the text around a literal might be read otherwise with another literal: nothing is kept
}

func (r *recorder) reset() { r.marks, r.sign, r.unsure = r.marks[:0], -1, false }

// fixed is how many of n bytes are in no mark.
func (r *recorder) fixed(n int) int {
	for _, m := range r.marks {
		n -= m.end - m.start
	}
	return n
}

// add notes a mark that is no single literal.
func (r *recorder) add(kind uint8, start, end int, s []byte) {
	if r == nil {
		return
	}
	if r.sign >= 0 || (kind == elLimit && !mayFollow(s, end)) {
		r.unsure = true
	}
	r.marks = append(r.marks, mark{kind, start, end})
}

// literal notes a literal; out is the fingerprint before it.
func (r *recorder) literal(s []byte, start, end int, out []byte) {
	if r == nil || r.unsure {
		return
	}
	kind, at := uint8(elLiteral), start
	if r.sign >= 0 {
		kind, at = elSigned, r.sign
		r.sign = -1
		if at > 0 && s[at-1] == '-' { // with a blank after it, this sign would make a comment
			r.unsure = true
			return
		}
	} else if at == 0 || s[at-1] != '-' && s[at-1] != '+' && !operandBefore(out) {
		kind = elSigned
	}
	r.unsure = !mayPrecede(s, at) || !mayFollow(s, end) || contextual(out, startsLiteral(s, start))
	r.marks = append(r.marks, mark{kind, at, end})
}

// mayPrecede reports whether any literal can stand at i without being read as one with the byte before it.
func mayPrecede(s []byte, i int) bool {
	if i == 0 {
		return false
	}
	switch s[i-1] {
	case '+', '-': // with digits after it, 1e+ becomes a number
		return i < 3 || s[i-2]|0x20 != 'e' || !isDigit(s[i-3]) && s[i-3] != '.'
	case ' ', '\t', '\n', '\r', '(', ',', '=', '<', '>', '*', '%':
		return true
	}
	return false
}

// mayFollow tells the same of the byte after it.
func mayFollow(s []byte, i int) bool {
	if i >= len(s) {
		return true
	}
	switch s[i] {
	case ' ', '\t', '\n', '\r', ')', ',', '=', '<', '>', '+', '-', '*', '%', '/', ';':
		return true
	}
	return false
}

// contextual reports whether what precedes a literal gives some literals another meaning: IS NULL, LIMIT m, n,
// _utf8 'x', and a sign, which belongs to a number (plain) but not to NULL.
func contextual(out []byte, plain bool) bool {
	if endsIn(out, "is ") || endsIn(out, "not ") || endsIn(out, "limit ") || endsIn(out, "limit") {
		return true
	}
	out = bytes.TrimRight(out, " ")
	if len(out) == 0 {
		return false
	}
	c := out[len(out)-1]
	if c == '+' || c == '-' {
		return !plain
	}
	if !isWord(c) {
		return false
	}
	k := len(out)
	for k > 0 && len(out)-k <= maxKeyword && isWord(out[k-1]) {
		k--
	}
	return out[k] == '_'
}

// node is a place in the tree of texts: after text, what may come next.
type node struct {
	text  []byte
	class int // of the statement that ends here; -1: none
	elems []elem
	first []byte // the first bytes of the texts of kids
	kids  []*node
}

type elem struct {
	kind uint8
	next *node
}

// find returns the class of a statement, or -1 if the tree does not know it.
func (n *node) find(s []byte) int {
	i := 0
walk:
	for {
		if t := n.text; len(s)-i < len(t) || string(s[i:i+len(t)]) != string(t) {
			return -1
		}
		i += len(n.text)
		for k := range n.elems {
			if end, ok := match(n.elems[k].kind, s, i); ok {
				i, n = end, n.elems[k].next
				continue walk
			}
		}
		if i >= len(s) {
			return n.class
		}
		k, c := 0, s[i]
		for k < len(n.first) && n.first[k] != c { // few, mostly one
			k++
		}
		if k == len(n.first) {
			return -1
		}
		n = n.kids[k]
	}
}

// match returns the place after what of a kind is at i, if it is.
func match(kind uint8, s []byte, i int) (int, bool) {
	if kind == elRows {
		return skipRows(s, i), true
	}
	if i >= len(s) {
		return i, false
	}
	if kind >= elList && kind <= elLimit && isWord(s[i]) {
		return i, false // the keyword before goes on
	}
	if kind <= elSigned {
		switch classOf[s[i]] {
		case clQuote:
			return stringEnd(s, i), true
		case clDigit:
			return numberEnd(s, i)
		}
	}
	switch kind {
	case elLiteral:
		return anyLiteral(s, i)
	case elSigned:
		if c := s[i]; c == '-' || c == '+' {
			if _, ok := commentEnd(s, i); ok {
				return i, false
			}
			if i = skipBlank(s, i+1); !startsLiteral(s, i) {
				return i, false
			}
		}
		return anyLiteral(s, i)
	case elList:
		if i = skipBlank(s, i); i >= len(s) || s[i] != '(' {
			return i, false
		}
		return literalList(s, i)
	case elLimit:
		return limitEnd(s, i)
	case elComment:
		end, ok := commentEnd(s, i)
		return end, ok && plainComment(s[i:end])
	}
	j, row := rowsAt(s, i)
	if row != (kind == elRow) || j >= len(s) || s[j] != '(' {
		return i, false
	}
	end, ok := literalList(s, j)
	if !ok {
		return i, false
	}
	if kind == elFuncVal {
		return skipLiteralRows(s, end), true
	}
	return skipRows(s, end), true
}

// anyLiteral is literalEnd without what only fingerprints and digests hold.
func anyLiteral(s []byte, i int) (int, bool) {
	if s[i] == '?' || s[i] == '.' && i+1 < len(s) && s[i+1] == '.' {
		return i, false
	}
	return literalEnd(s, i)
}

// plainComment reports whether a comment is one like any other, and not one with a meaning to Append.
func plainComment(c []byte) bool {
	return !isToolkit(c) && !bytes.HasPrefix(c, []byte("/*repeat union"))
}

// insert puts a statement into the tree and returns how many bytes that took, roughly.
func (n *node) insert(s []byte, marks []mark, class int) (size int) {
	at := 0
	for _, m := range marks {
		n = n.after(s[at:m.start], &size)
		at = m.end
		n = n.elem(m.kind, &size)
	}
	n.after(s[at:], &size).class = class
	return size
}

const nodeSize = 160

func (n *node) elem(kind uint8, size *int) *node {
	for _, e := range n.elems {
		if e.kind == kind {
			return e.next
		}
	}
	next := &node{class: -1}
	n.elems = append(n.elems, elem{kind, next})
	*size += nodeSize
	return next
}

// after returns the node after text, which it makes if there is none.
func (n *node) after(text []byte, size *int) *node {
	for len(text) > 0 {
		k := bytes.IndexByte(n.first, text[0])
		if k < 0 {
			kid := &node{text: bytes.Clone(text), class: -1}
			n.first, n.kids = append(n.first, text[0]), append(n.kids, kid)
			*size += nodeSize + len(text)
			return kid
		}
		kid := n.kids[k]
		same := 0
		for same < len(text) && same < len(kid.text) && text[same] == kid.text[same] {
			same++
		}
		if same < len(kid.text) { // part it
			mid := &node{text: kid.text[:same:same], class: -1, first: []byte{kid.text[same]}, kids: []*node{kid}}
			kid.text = kid.text[same:]
			n.kids[k] = mid
			kid = mid
			*size += nodeSize
		}
		n, text = kid, text[same:]
	}
	return n
}
