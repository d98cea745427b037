package config

import (
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/digits"
)

// Limits bound what questions may cost Risso, so that watching goes first. A field that is zero has its default.
type Limits struct {
	Samples     int           // that one PromQL question may hold at a time; default 3,000,000
	Series      int           // that one PromQL question may touch; default 50,000
	Answer      int64         // bytes of one answer, before it is packed; default 64,000,000
	Memory      int64         // bytes that all questions together may take, garbage included; default 200,000,000
	Time        time.Duration // of working on one question; default 30 s
	Write       time.Duration // of sending one answer; default 30 s
	Body        time.Duration // of receiving the body of a request; default 30 s
	AtOnce      int           // questions of one kind (charts, PromQL, statements) at the same time; default 2
	Wait        time.Duration // for a place among them, before a question is refused with 503; default 5 s
	Connections int           // that are open at once; default 512
}

// limitsConfig bounds what questions over HTTP may cost; what is left out has its default. docs/watch.md lists them.
type limitsConfig struct {
	Samples     int    `yaml:"samples,omitempty"`     // that one PromQL question may hold at a time
	Series      int    `yaml:"series,omitempty"`      // that one PromQL question may touch
	Answer      string `yaml:"answer,omitempty"`      // size of one answer, such as 64MB
	Memory      string `yaml:"memory,omitempty"`      // of all questions together, such as 200MB
	Time        string `yaml:"time,omitempty"`        // of working on one question, such as 30s
	Write       string `yaml:"write,omitempty"`       // of sending one answer
	Body        string `yaml:"body,omitempty"`        // of receiving the body of a request
	AtOnce      int    `yaml:"at_once,omitempty"`     // questions of one kind at the same time
	Wait        string `yaml:"wait,omitempty"`        // for a place among them
	Connections int    `yaml:"connections,omitempty"` // open at once
}

// leastMemory is the least that leaves room for an ordinary question.
const leastMemory = 32 << 20

// check reads the block. Errors name the field.
func (c limitsConfig) check() (Limits, error) {
	l := Limits{Samples: c.Samples, Series: c.Series, AtOnce: c.AtOnce, Connections: c.Connections}
	for name, n := range map[string]int{"samples": c.Samples, "series": c.Series, "at_once": c.AtOnce, "connections": c.Connections} {
		if n < 0 {
			return l, fmt.Errorf("%s: must not be negative", name)
		}
	}
	for _, f := range []struct {
		name, text string
		into       *int64
	}{{"answer", c.Answer, &l.Answer}, {"memory", c.Memory, &l.Memory}} {
		if f.text == "" {
			continue
		}
		n, err := digits.ParseBytes(f.text)
		if err != nil || n == 0 {
			return l, fmt.Errorf("%s: %q: write it as 64MB or 1GiB", f.name, f.text)
		}
		*f.into = n
	}
	if l.Memory != 0 && l.Memory < leastMemory {
		return l, fmt.Errorf("memory: %q is too little for queries: at least 32MiB", c.Memory)
	}
	for _, f := range []struct {
		name, text string
		into       *time.Duration
	}{{"time", c.Time, &l.Time}, {"write", c.Write, &l.Write}, {"body", c.Body, &l.Body}, {"wait", c.Wait, &l.Wait}} {
		if f.text == "" {
			continue
		}
		d, err := digits.ParseDuration(f.text)
		if err != nil || d <= 0 {
			return l, fmt.Errorf("%s: %q: write it as 30s or 2m", f.name, f.text)
		}
		*f.into = d
	}
	return l, nil
}
