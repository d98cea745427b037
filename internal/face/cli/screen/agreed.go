package screen

import (
	"bufio"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/rissodb/risso/internal/fault"
)

// Agreed asks whether to go on with what was shown, unless --yes says so. Else the error says that nothing was done.
//
// From then on something is changed: a pipe that is closed, as by "| head", does not end that in its midst.
func Agreed(s Streams, yes bool) error {
	signal.Ignore(syscall.SIGPIPE)
	if yes {
		return nil
	}
	if !OnTerminal(s.Err) {
		return fault.New(fault.Usage, "--yes does it, --dry-run only shows it", errors.New("nothing was done: there is nobody to ask"))
	}
	fmt.Fprint(s.Err, "Do it? [y/N] ")
	line, _ := bufio.NewReader(s.In).ReadString('\n')
	if !strings.EqualFold(strings.TrimSpace(line), "y") {
		return fault.New(fault.Failed, "", errors.New("nothing was done"))
	}
	return nil
}
