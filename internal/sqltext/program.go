package sqltext

// program finds where the statements of a stored program begin.
type program struct {
	*reader
	stack []block
	out   []int
}

// block is what is open around a statement.
type block uint8

const (
	begins     block = iota // BEGIN … END
	ifs                     // IF … END IF
	cases                   // CASE … END CASE, a statement
	expression              // CASE … END, a value
	waits                   // WHILE and FOR before their DO
	loops                   // LOOP, REPEAT, WHILE and FOR … END
	declares                // of Oracle's mode: what comes before BEGIN
	packs                   // PACKAGE … END
)

func (p *program) open(b block) { p.stack = append(p.stack, b) }

func (p *program) top() block {
	if len(p.stack) == 0 {
		return 255
	}
	return p.stack[len(p.stack)-1]
}

// split reads one statement, which may be a block of others, from the current token to its end, a semicolon after it
// included, and returns the places of all that are in it. Sources: MySQL manual, "Compound Statement Syntax"; MariaDB
// documentation, "Programmatic and Compound Statements" and "sql_mode=ORACLE".
func (p *program) split() []int {
	for start := true; p.i < len(p.t); p.i++ {
		if p.sign(p.i, ";") {
			if start = true; len(p.stack) == 0 {
				for p.sign(p.i, ";") {
					p.i++
				}
				break
			}
			continue
		}
		if p.at(p.i).Kind != TokenWord || p.sign(p.i-1, ".") || p.sign(p.i+1, ".") {
			if start {
				start = p.label() || !p.begin()
			}
			continue
		}
		if start {
			start = p.label() || p.statement()
		} else {
			start = p.within()
		}
	}
	return p.out
}

// begin notes a statement.
func (p *program) begin() bool {
	p.out = append(p.out, p.i)
	return true
}

// label skips the label before a block.
func (p *program) label() bool {
	if p.at(p.i).Name() && p.sign(p.i+1, ":") {
		p.i++
		return true
	}
	if p.sign(p.i, "<") && p.sign(p.i+1, "<") && p.sign(p.i+3, ">") && p.sign(p.i+4, ">") {
		p.i += 4
		return true
	}
	return false
}

// statement acts on the word with which a statement begins, and tells whether another one may begin right after it.
func (p *program) statement() bool {
	switch {
	case p.is(p.i, "BEGIN"):
		if p.is(p.i+1, "NOT") && p.is(p.i+2, "ATOMIC") {
			p.i += 2
		}
		if p.top() == declares || p.top() == packs {
			p.stack = p.stack[:len(p.stack)-1]
		}
		p.open(begins)
		return true
	case p.is(p.i, "LOOP"), p.is(p.i, "REPEAT") && !p.sign(p.i+1, "("):
		p.open(loops)
		return true
	case p.is(p.i, "ELSE"), p.is(p.i, "EXCEPTION"):
		return true
	case p.is(p.i, "END"):
		p.end()
		return false
	case p.is(p.i, "DECLARE") && p.is(p.i+2, "HANDLER"):
		p.handler()
		return true
	case (p.top() == declares || p.top() == packs) && (p.is(p.i, "PROCEDURE") || p.is(p.i, "FUNCTION")):
		return p.routine()
	}
	p.begin()
	switch {
	case p.is(p.i, "IF"):
		p.open(ifs)
	case p.is(p.i, "CASE"):
		p.open(cases)
	case p.is(p.i, "WHILE"), p.is(p.i, "FOR"):
		p.open(waits)
	case p.is(p.i, "DECLARE") && p.d.Oracle && p.top() != declares: // it comes before BEGIN there, and after it elsewhere
		p.open(declares)
	}
	return false
}

// within acts on a word inside of a statement, and tells whether another statement begins after it.
func (p *program) within() bool {
	switch {
	case p.is(p.i, "CASE"):
		p.open(expression)
	case p.is(p.i, "END"):
		if p.top() == expression || p.top() == loops && p.is(p.i+1, "REPEAT") { // UNTIL … END REPEAT
			p.end()
		}
	case p.is(p.i, "THEN"), p.is(p.i, "ELSE"):
		return len(p.stack) > 0 && p.top() != expression
	case p.is(p.i, "DO"), p.is(p.i, "LOOP"):
		if p.top() == waits {
			p.stack[len(p.stack)-1] = loops
			return true
		}
	}
	return false
}

// end closes a block.
func (p *program) end() {
	value := p.top() == expression
	if len(p.stack) > 0 {
		p.stack = p.stack[:len(p.stack)-1]
	}
	if value {
		return
	}
	for _, w := range []string{"IF", "CASE", "LOOP", "REPEAT", "WHILE", "FOR"} {
		if p.is(p.i+1, w) {
			p.i++
			return
		}
	}
}

// handler skips DECLARE … HANDLER FOR and its conditions; its statement follows.
func (p *program) handler() {
	p.begin()
	for p.i += 4; ; p.i++ { // DECLARE CONTINUE HANDLER FOR
		if p.is(p.i, "NOT") || p.is(p.i, "SQLSTATE") {
			p.i++
		}
		if p.is(p.i, "VALUE") && p.at(p.i+1).Kind == TokenString {
			p.i++
		}
		if !p.sign(p.i+1, ",") {
			return
		}
		p.i++
	}
}

// routine skips the head of a routine of a package, or of one inside of another.
func (p *program) routine() bool {
	p.i++
	p.ident()
	p.characteristics(&Create{})
	switch {
	case p.is(p.i, "AS"), p.is(p.i, "IS"):
		p.open(declares)
		return true
	case p.is(p.i, "BEGIN"):
		p.open(begins)
		return true
	}
	p.i--
	return !p.sign(p.i+1, ";")
}
