package compare

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/pattern"
)

// Setting is a global variable with its value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Null says that the value is NULL, not text.
	Null bool `json:"null,omitempty"`
}

func (s Setting) String() string {
	if s.Null {
		return s.Name + "=NULL"
	}
	return s.Name + "=" + s.Value
}

var (
	settingForm = pattern.Lazy(`^([a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)?)=(.*)$`)
	numberForm  = pattern.Lazy(`^-?[0-9]+(\.[0-9]+)?$`)
	sizeForm    = pattern.Lazy(`^([0-9]+)([KMG])$`)
)

// ParseSetting reads name=value. A value may end in K, M or G. Errors wrap workload.ErrUsage.
func ParseSetting(text string) (Setting, error) {
	m := settingForm().FindStringSubmatch(strings.ToLower(strings.SplitN(text, "=", 2)[0]) + strings.TrimPrefix(text, strings.SplitN(text, "=", 2)[0]))
	if m == nil {
		return Setting{}, fmt.Errorf("%w: setting %q: write it as variable=value", workload.ErrUsage, text)
	}
	s := Setting{Name: m[1], Value: m[2]}
	if size := sizeForm().FindStringSubmatch(s.Value); size != nil {
		n, err := strconv.ParseInt(size[1], 10, 64)
		shift := map[string]int{"K": 10, "M": 20, "G": 30}[size[2]]
		if err != nil || n > 1<<(62-shift) {
			return s, fmt.Errorf("%w: setting %q: too large", workload.ErrUsage, text)
		}
		s.Value = strconv.FormatInt(n<<shift, 10)
	}
	return s, nil
}

// statement sets a variable; quoted says that a number is a text to the server.
func (s Setting) statement(quoted bool) string {
	value := s.Value
	switch {
	case s.Null:
		value = "NULL"
	case quoted || !numberForm().MatchString(value):
		value = mysql.Literal(value)
	}
	return "SET /* risso bench */ GLOBAL " + s.Name + " = " + value
}

// Errors of settings.
var (
	// ErrNotDynamic is a variable that only a restart changes.
	ErrNotDynamic = errors.New("cannot be changed while the server runs")
	// ErrNotRestored is a server on which not everything could be put back.
	ErrNotRestored = errors.New("what was changed could not be put back")
	// ErrLeft is a server on which a killed compare left its settings, or another one works.
	ErrLeft = errors.New("another comparison of settings is running on this server")
)

// Settings changes global variables of one server for the runs of two sides, and puts them back.
type Settings struct {
	target  mysql.Target
	a, b    []Setting
	old     []Setting
	started int64
	loan    *change.Loan[[]Setting]
	conn    *mysql.Conn  // by which everything is set and put back: with some settings there is no other way in
	stands  [2][]Setting // what the server held when each side was tried
}

// Plan is what Settings will do.
type Plan struct {
	Server string    `json:"server"`
	A      []string  `json:"a"`
	B      []string  `json:"b"`
	Back   []string  `json:"back"`
	Old    []Setting `json:"old"`
	// Uncertain are variables for which this server does not say whether they can be changed.
	Uncertain []string `json:"uncertain,omitempty"`
}

const askTimeout = 10 * time.Second

// PlanSettings reads the present values and says what will be run. It changes nothing. Errors of wrong use wrap
// workload.ErrUsage.
func PlanSettings(ctx context.Context, target mysql.Target, a, b []Setting) (*Settings, *Plan, error) {
	for _, side := range [][]Setting{a, b} {
		for i, s := range side {
			if slices.ContainsFunc(side[:i], func(o Setting) bool { return o.Name == s.Name }) {
				return nil, nil, fmt.Errorf("%w: %s is set twice for one side", workload.ErrUsage, s.Name)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	s := &Settings{target: target}
	if s.started, err = read.Started(ctx, c); err != nil {
		return nil, nil, fmt.Errorf("ask since when the server runs: %w", err)
	}
	p := &Plan{Server: target.String() + ", " + c.Server.Version}
	has := func(name string) bool {
		return slices.ContainsFunc(s.old, func(o Setting) bool { return o.Name == name })
	}
	for _, v := range slices.Concat(a, b) {
		if has(v.Name) {
			continue
		}
		old, err := readVariable(ctx, c, v.Name)
		if err != nil {
			return nil, nil, err
		}
		s.old = append(s.old, old)
		dynamic, known, err := read.Dynamic(ctx, c, v.Name)
		switch {
		case err != nil:
			return nil, nil, err
		case known && !dynamic:
			return nil, nil, notDynamic(v.Name)
		case !known:
			p.Uncertain = append(p.Uncertain, v.Name)
		}
	}
	for _, v := range slices.Clone(s.old) {
		for _, name := range companionsOf(v.Name) {
			if has(name) {
				continue
			}
			if old, err := readVariable(ctx, c, name); err == nil {
				s.old = append(s.old, old)
			} else if !errors.Is(err, workload.ErrUsage) { // not every server has it
				return nil, nil, err
			}
		}
	}
	// A side runs with what it does not set as it was before, except what the server changes along with its settings.
	s.a, s.b = a, b
	p.Old = s.old
	p.A, p.B, p.Back = sqlOf(slices.Concat(s.rest(a), a)), sqlOf(slices.Concat(s.rest(b), b)), sqlOf(s.old)
	return s, p, nil
}

func notDynamic(name string) error {
	return fmt.Errorf("%w: %s %w: compare two servers (--dsn-a, --dsn-b), or give it as a start-up option in a file for risso bench matrix", workload.ErrUsage, name, ErrNotDynamic)
}

// rest is what a side leaves as it was before.
func (s *Settings) rest(side []Setting) []Setting {
	return slices.DeleteFunc(slices.Clone(s.old), func(o Setting) bool {
		return movesWith(o.Name, side) || slices.ContainsFunc(side, func(v Setting) bool { return v.Name == o.Name })
	})
}

func sqlOf(list []Setting) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.statement(false)
	}
	return out
}

func readVariable(ctx context.Context, c *mysql.Conn, name string) (Setting, error) {
	s := Setting{Name: name}
	err := c.Query(ctx, "SELECT /* risso bench */ @@GLOBAL."+name, func(row []sqldriver.Value) error {
		s.Null = row[0] == nil
		s.Value = mysql.Text(row[0])
		return nil
	})
	if number(err) == errno.UnknownVariable {
		return s, fmt.Errorf("%w: the server has no variable %s", workload.ErrUsage, name)
	}
	if number(err) == errno.ReadOnlyVariable {
		return s, fmt.Errorf("%w: %s is not a global variable", workload.ErrUsage, name)
	}
	if err != nil {
		return s, fmt.Errorf("read %s: %w", name, err)
	}
	return s, nil
}

func number(err error) int {
	var me *driver.MySQLError
	if errors.As(err, &me) {
		return int(me.Number)
	}
	return 0
}

// Begin writes the journal into dir, then tries both sides' settings once, so that a wrong value ends the comparison before its
// first run. When it fails, everything is as before.
func (s *Settings) Begin(ctx context.Context, dir string) error {
	c, err := mysql.Connect(ctx, s.target, nil)
	if err != nil {
		return err
	}
	if err = s.begin(ctx, c, dir); err != nil {
		c.Close()
		return err
	}
	s.conn = c
	return nil
}

func (s *Settings) begin(ctx context.Context, c *mysql.Conn, dir string) error {
	err := c.Exec(ctx, "SET SESSION /* risso bench: stay through long runs */ wait_timeout = 2147483")
	if err != nil {
		return err
	}
	if s.loan, err = borrowed().Borrow(dir, s.target, c.Server, s.started, s.old); err != nil {
		return err
	}
	side := func(list []Setting, stands *[]Setting) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			if *stands, err = s.set(ctx, c, list); err == nil {
				err = s.login(ctx)
			}
			return err
		}
	}
	var before map[string]string
	steps := change.Plan{
		{What: "try the settings of", Where: "A", Do: side(s.a, &s.stands[0])},
		{What: "try the settings of", Where: "B", Do: side(s.b, &s.stands[1])},
		{What: "restore the previous values", Do: func(ctx context.Context) error { return putBack(ctx, c, s.old) }},
	}
	try := func(ctx context.Context) error {
		_, err := change.Execute(ctx, steps, change.Log{})
		return err
	}
	return s.loan.Execute(ctx, c, slices.Concat(
		change.Plan{{What: "read all variables", Do: func(ctx context.Context) (err error) {
			before, err = read.StillVariables(ctx, c)
			return err
		}}},
		steps,
		change.Plan{{What: "look for others that changed", Do: func(ctx context.Context) error { return strays(ctx, c, before, try) }}},
	), change.Log{})
}

// login tries whether the server takes a new session with the settings it has now.
func (s *Settings) login(ctx context.Context) error {
	c, err := mysql.Connect(ctx, s.target, nil)
	switch {
	case err == nil:
		return c.Close()
	case ctx.Err() != nil: // interrupted
		return err
	}
	return fmt.Errorf("%w: with these settings the server takes no new session: %w", workload.ErrUsage, err)
}

// set sets a side's variables, those that it does not name to what they were, and reads all that this comparison touches.
func (s *Settings) set(ctx context.Context, c *mysql.Conn, side []Setting) ([]Setting, error) {
	if err := putBack(ctx, c, s.rest(side)); err != nil {
		return nil, err
	}
	if err := apply(ctx, c, side); err != nil {
		return nil, err
	}
	now := make([]Setting, len(s.old))
	for i, v := range s.old {
		var err error
		if now[i], err = readVariable(ctx, c, v.Name); err != nil {
			return nil, err
		}
	}
	return now, nil
}

// Stands returns what the server held when A's variables were tried, and B's: it takes some values and keeps others.
func (s *Settings) Stands() (a, b []Setting) { return s.stands[0], s.stands[1] }

// Same says that the server held the same for both sides.
func (s *Settings) Same() bool { return slices.Equal(s.stands[0], s.stands[1]) }

// Otherwise names the variables of which the server holds something other than was asked for, in words.
func Otherwise(asked, stands []Setting) (out []string) {
	for _, v := range asked {
		for _, is := range stands {
			if is.Name == v.Name && !sameValue(v, is) {
				out = append(out, fmt.Sprintf("%s was requested, but the server has %s", v, is))
			}
		}
	}
	return out
}

// sameValue compares as the server does: ON is 1, 1.0 is 1, and case does not matter.
func sameValue(x, y Setting) bool {
	if x.Null || y.Null {
		return x.Null == y.Null
	}
	plain := func(s string) string {
		s = strings.ToLower(strings.TrimSpace(s))
		switch s {
		case "on", "true", "yes":
			return "1"
		case "off", "false", "no":
			return "0"
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && numberForm().MatchString(s) {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
		return s
	}
	return plain(x.Value) == plain(y.Value)
}

// Apply sets A's variables, or B's, and returns them as the server holds them now.
func (s *Settings) Apply(ctx context.Context, second bool) ([]Setting, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	side := s.a
	if second {
		side = s.b
	}
	now, err := s.set(ctx, s.conn, side)
	if err == nil || !mysql.Lost(err) {
		return now, err
	}
	c, cerr := mysql.Connect(ctx, s.target, nil)
	if cerr != nil {
		return nil, err
	}
	s.conn.Close()
	s.conn = c
	return s.set(ctx, c, side)
}

func apply(ctx context.Context, c *mysql.Conn, list []Setting) error {
	for _, v := range list {
		err := c.Query(ctx, v.statement(false), nothing)
		if number(err) == errno.WrongType && numberForm().MatchString(v.Value) {
			err = c.Query(ctx, v.statement(true), nothing)
		}
		switch number(err) {
		case errno.ReadOnlyVariable:
			return notDynamic(v.Name)
		case errno.WrongValue, errno.WrongType, errno.WrongArguments:
			return fmt.Errorf("%w: %s: the server rejects %s: %w", workload.ErrUsage, v.Name, v.Value, err)
		}
		if err != nil {
			return fmt.Errorf("set %s: %w", v, err)
		}
	}
	return nil
}

func nothing([]sqldriver.Value) error { return nil }

// putBackWithin is how long PutBack tries to reach a server that went away.
const putBackWithin = 20 * time.Second

// PutBack restores what was there before, regardless of ctx, and makes sure of it by reading. If it cannot, the journal
// stays.
func (s *Settings) PutBack(ctx context.Context) error {
	if s.loan == nil {
		return nil
	}
	c, err := s.loan.Return(ctx, s.conn)
	if s.conn = nil; c != nil {
		c.Close()
	}
	return err
}

// borrowed is what a comparison changes on a server for its time; one that is restarted begins with the values of its option file.
func borrowed() change.Kind[[]Setting] {
	return change.Kind[[]Setting]{
		Name: "settings", Command: "risso bench compare --restore", Busy: ErrLeft, Kept: ErrNotRestored, Within: putBackWithin,
		Back: putBack, Statements: sqlOf,
		Final: func(err error) bool { return number(err) != 0 || errors.Is(err, workload.ErrUsage) }, // an answer of the server
		Check: func(old []Setting) error {
			for _, s := range old {
				if settingForm().FindString(s.Name+"=") == "" { // the names go into statements
					return fmt.Errorf("it names a variable %q", s.Name)
				}
			}
			return nil
		},
	}
}

// Left says what a killed compare left on a server.
type Left = change.Left[[]Setting]

// Restore puts back what a killed compare left on a server; with dryRun it only says what it would run. It returns nil if there
// is nothing.
func Restore(ctx context.Context, target mysql.Target, dir string, dryRun bool) (*Left, error) {
	return borrowed().Restore(ctx, target, dir, dryRun)
}

// CheckLeft says, by an error that wraps ErrLeft, that a compare left its settings on a server, or is at work on it: everything
// measured there would be measured with them. A server that was restarted since has its own settings again.
func CheckLeft(ctx context.Context, target mysql.Target, dir string) error {
	return borrowed().Waits(ctx, target, dir)
}

// putBack sets what differs, and makes sure of it by reading. A variable may move another one that was put back before it (collation_server
// follows character_set_server): that one is set again.
func putBack(ctx context.Context, c *mysql.Conn, old []Setting) error {
	const rounds = 3
	for n := 0; ; n++ {
		var changed []Setting // what is as it was is left alone: it may be the very variable that cannot be set
		for _, o := range old {
			is, err := readVariable(ctx, c, o.Name)
			if err != nil {
				return err
			}
			if is != o {
				changed = append(changed, o)
			}
		}
		if len(changed) == 0 {
			return nil
		}
		if n == rounds {
			return fmt.Errorf("the server does not go back to %v", changed)
		}
		if err := apply(ctx, c, changed); err != nil {
			return err
		}
	}
}
