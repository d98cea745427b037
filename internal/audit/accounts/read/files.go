package read

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/rissodb/risso/internal/audit/accounts"
)

// Policy reads a policy from a file; "" is the built-in one.
func Policy(path string) (accounts.Policy, error) {
	if path == "" {
		return accounts.Default()
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return accounts.Policy{}, err
	}
	p, err := accounts.ReadPolicy(text)
	if err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// mostWords is how many passwords a list may have: they are held in memory.
const mostWords = 10_000_000

// Words reads passwords from a file, one a line; "" has none.
func Words(path string) (words []string, err error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if w := strings.TrimSuffix(lines.Text(), "\r"); w != "" {
			words = append(words, w)
		}
		if len(words) > mostWords {
			return nil, fmt.Errorf("%s has more than %d words", path, mostWords)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return words, nil
}
