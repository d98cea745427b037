package fleet

import "strings"

// Trouble is something that is wrong or missing, why, and its remedy, in words for a person. What is unknown, or is said by the
// struct that it is part of, is empty.
type Trouble struct {
	What   string `json:"what,omitempty"`   // what is wrong, or what it is about: "InnoDB metrics"
	Why    string `json:"why,omitempty"`    // why it is so: "the account needs PROCESS"
	Remedy string `json:"remedy,omitempty"` // a statement or command to copy, if there is one
}

// remedied is an error that knows its remedy.
type remedied struct {
	error
	remedy string
}

func (e *remedied) Unwrap() error { return e.error }

// Remedy is how to fix the error.
func (e *remedied) Remedy() string { return e.remedy }

// WithRemedy is err with a remedy, in words for a person; its text stays as it is. Without a remedy it is err itself.
func WithRemedy(err error, remedy string) error {
	if err == nil || remedy == "" {
		return err
	}
	return &remedied{err, remedy}
}

// RemedyOf is the remedy for err: what the first error in its tree, from the outside, says by a method Remedy; "" if none does.
func RemedyOf(err error) string {
	if e, ok := err.(interface{ Remedy() string }); ok && e.Remedy() != "" {
		return e.Remedy()
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return RemedyOf(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if r := RemedyOf(err); r != "" {
				return r
			}
		}
	}
	return ""
}

// ShellWord is a word of a command as a POSIX shell takes it: in quotes where it needs them.
func ShellWord(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
