package sqltext

// Group returns what is between the parenthesis with which t begins and the one that closes it, and what follows; ok is
// false if t begins otherwise, or ends before.
func Group(t []Token) (inside, rest []Token, ok bool) {
	depth := 0
	for i, x := range t {
		if x.Kind == TokenSign && x.Text == "(" {
			depth++
		} else if x.Kind == TokenSign && x.Text == ")" {
			depth--
		}
		if depth == 0 {
			if i == 0 {
				return nil, t, false
			}
			return t[1:i], t[i+1:], true
		}
	}
	return nil, t, false
}

// Elements cuts tokens at the commas outside of parentheses.
func Elements(t []Token) (list [][]Token) {
	from, depth := 0, 0
	for i, x := range t {
		if x.Kind != TokenSign {
			continue
		}
		switch x.Text {
		case "(":
			depth++
		case ")":
			depth--
		case ",":
			if depth <= 0 {
				list, from = append(list, t[from:i]), i+1
			}
		}
	}
	return append(list, t[from:])
}

// Words returns the words outside of parentheses that are not quoted.
func Words(t []Token) (words []string) {
	depth := 0
	for _, x := range t {
		switch {
		case x.Kind == TokenSign && x.Text == "(":
			depth++
		case x.Kind == TokenSign && x.Text == ")":
			depth--
		case x.Kind == TokenWord && depth == 0:
			words = append(words, x.Text)
		}
	}
	return words
}

// Span is the place in their text of all of some tokens.
func Span(t []Token) (begin, end int) {
	if len(t) == 0 {
		return 0, 0
	}
	return t[0].Begin, t[len(t)-1].End
}
