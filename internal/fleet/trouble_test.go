package fleet

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestRemedy(t *testing.T) {
	low := WithRemedy(io.EOF, "read again")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"nothing", nil, ""},
		{"a plain error", io.EOF, ""},
		{"its own", low, "read again"},
		{"below a wrapped one", fmt.Errorf("log: %w", low), "read again"},
		{"the outer one counts", WithRemedy(fmt.Errorf("log: %w", low), "take another log"), "take another log"},
		{"an empty one hides nothing", WithRemedy(fmt.Errorf("log: %w", low), ""), "read again"},
		{"the first of several", errors.Join(io.EOF, low, WithRemedy(io.EOF, "later")), "read again"},
	} {
		if got := RemedyOf(c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if WithRemedy(nil, "x") != nil {
		t.Error("no error: got one with a remedy, want nil")
	}
	if low.Error() != "EOF" || !errors.Is(low, io.EOF) {
		t.Errorf("got %q, want the error's own text and identity", low)
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"/a/b": "/a/b", "it's": `'it'\''s'`, "": "''", "app@%": "app@%", "$(id)": "'$(id)'", "a b": "'a b'"} {
		if got := ShellWord(word); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
