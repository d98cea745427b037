package rotate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// takesChanges refuses a server that follows another one: what is changed on a replica alone is a transaction of its own there, which
// breaks replication, and the next change of the primary would undo it.
func (r *Rotation) takesChanges(ctx context.Context) error {
	settings, err := read.Variables(ctx, r.conn, []string{"read_only", "super_read_only"})
	if err != nil {
		return err
	}
	replica, err := read.IsReplica(ctx, r.conn)
	if err != nil && mysql.ClassOf(err) != mysql.ClassPrivilege {
		return fmt.Errorf("ask whether the server replicates: %w", err)
	}
	for _, name := range []string{"super_read_only", "read_only"} {
		// MariaDB says ON; its newer versions have other words for stricter kinds.
		if v := settings[name]; v != "" && v != "OFF" && v != "0" {
			return fleet.WithRemedy(fmt.Errorf("%s is %s: passwords are not changed here", name, v), "name the primary; replicas follow it")
		}
	}
	if replica {
		r.Notes = append(r.Notes, "this server replicates from another one: if that is its primary, rotate there, or replication can break")
	}
	return nil
}

// takesForms refuses a server that takes passwords only as they are, to look at them: its logs would have them.
func (r *Rotation) takesForms(ctx context.Context) error {
	settings, err := read.Variables(ctx, r.conn, []string{"strict_password_validation"})
	if err != nil || settings["strict_password_validation"] != "ON" {
		return err
	}
	loaded, err := r.conn.Maps(ctx, "SELECT /* risso: accounts rotate */ PLUGIN_NAME AS p FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'PASSWORD VALIDATION' AND PLUGIN_STATUS = 'ACTIVE'")
	if err != nil {
		return fmt.Errorf("ask for plug-ins that look at passwords: %w", err)
	}
	if len(loaded) == 0 {
		return nil
	}
	return fleet.WithRemedy(fmt.Errorf("the server takes no password in the form that it stores: %s is loaded, and strict_password_validation is ON", loaded[0]["p"]),
		"SET GLOBAL strict_password_validation = OFF, and ON when the password is changed; Risso looks at it by the same rules")
}

// passwordRules are the settings of MySQL's component validate_password, of its older plug-in, and of MariaDB's simple_password_check.
var passwordRules = []string{"validate_password.policy", "validate_password.length", "validate_password.mixed_case_count", "validate_password.number_count", "validate_password.special_char_count",
	"validate_password_policy", "validate_password_length", "validate_password_mixed_case_count", "validate_password_number_count", "validate_password_special_char_count",
	"simple_password_check_minimal_length", "simple_password_check_letters_same_case", "simple_password_check_digits", "simple_password_check_other_characters"}

// allowed holds a password that somebody else chose against the server's own rules, which do not see it: the server gets only what it stores.
// Dictionaries, and the user's name in it, are not looked at.
func (r *Rotation) allowed(ctx context.Context, password string) error {
	if password == "" {
		return nil
	}
	settings, err := read.Variables(ctx, r.conn, passwordRules)
	if err != nil {
		return err
	}
	var upper, lower, figures, other int
	for _, c := range password {
		switch {
		case unicode.IsUpper(c):
			upper++
		case unicode.IsLower(c):
			lower++
		case unicode.IsDigit(c):
			figures++
		default:
			other++
		}
	}
	has := map[string]int{"length": len([]rune(password)), "mixed_case_count": min(upper, lower), "number_count": figures, "special_char_count": other,
		"minimal_length": len([]rune(password)), "letters_same_case": min(upper, lower), "digits": figures, "other_characters": other}
	for name, value := range settings {
		rule := strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(name, "validate_password"), "simple_password_check"), "._")
		want, err := strconv.Atoi(value)
		n, known := has[rule]
		if err != nil || !known || n >= want || rule != "length" && strings.HasPrefix(name, "validate") && lenient(settings) {
			continue
		}
		return fleet.WithRemedy(errors.New("the new password is not one that the server's rules allow: "+name+" is "+fmt.Sprint(want)+", and it has "+fmt.Sprint(n)), "without --password-file one is drawn")
	}
	return nil
}

// lenient reports whether validate_password looks at lengths only.
func lenient(settings map[string]string) bool {
	for _, name := range []string{"validate_password.policy", "validate_password_policy"} {
		if v := settings[name]; v == "LOW" || v == "0" {
			return true
		}
	}
	return false
}

// alone makes sure that no other rotation runs on the server, and that the account is still what the plan was made for. Two rotations at once
// would each keep what the other one does not.
func (r *Rotation) alone(ctx context.Context) (e error) {
	got, err := r.conn.Text(ctx, "SELECT /* risso: one rotation at a time */ GET_LOCK('risso.accounts.rotate', 0)")
	defer func() {
		if e != nil {
			r.free()
		}
	}()
	if err == nil && got != "1" {
		return fleet.WithRemedy(errors.New("another rotation runs on this server; nothing was changed"), "run it again when that has ended")
	}
	// Where locks by name are refused, as on some clusters, what follows still sees all but a change at the very moment.
	now, err := find(ctx, r.o)
	if err != nil {
		return err
	}
	if logins(now) != r.logins {
		return fleet.WithRemedy(fmt.Errorf("%s has been changed since the plan was made; nothing was changed", r.name), "run it again, to see a new plan")
	}
	return nil
}

// free lets the next rotation go on; the end of the session does, too.
func (r *Rotation) free() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = r.conn.Exec(ctx, "DO /* risso: one rotation at a time */ RELEASE_LOCK('risso.accounts.rotate')")
}
