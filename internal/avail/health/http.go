package health

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// body is what a client reads: the reason, which for a node of Galera is clustercheck's line, or JSON.
func (a Answer) body(q Question) (text []byte, kind string) {
	if !q.JSON {
		return append([]byte(a.Reason), "\r\n"...), "text/plain"
	}
	a.Age = math.Round(a.Age*1000) / 1000
	text, _ = json.Marshal(a) // a struct of plain values
	return append(text, '\n'), "application/json"
}

// ageSeconds is the Age of RFC 9111 in whole seconds; what was never seen has none.
func (a Answer) ageSeconds() string { return strconv.Itoa(int(math.Floor(a.Age))) }

// appendAge writes the age more exactly, such as 120ms.
func (a Answer) appendAge(b []byte) []byte {
	return append(strconv.AppendInt(b, int64(a.Age*1000), 10), "ms"...)
}

// Handler answers requests of net/http about the server that find names, until it says that there is none. Whoever may connect may ask:
// the answer tells no more than that.
func Handler(base Question, find func(r *http.Request) (p *Prober, target string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, target := find(r)
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Connection", "close")
		q, err := Ask(target, base)
		var a Answer
		switch {
		case p == nil:
			a = Answer{Status: http.StatusNotFound, Reason: "There is no such server.", Age: -1}
		case !answered(r.Method):
			h.Set("Allow", allowed)
			a = Answer{Status: http.StatusMethodNotAllowed, Reason: "Ask by GET, HEAD or OPTIONS.", Age: -1}
		case err != nil:
			a = Answer{Status: http.StatusBadRequest, Reason: notAnswered(err), Age: -1}
		default:
			a = p.Judge(q, time.Now())
		}
		if a.Age >= 0 {
			h.Set("Age", a.ageSeconds())
			h.Set("Risso-Age", string(a.appendAge(nil)))
		}
		text, kind := a.body(q)
		h.Set("Content-Type", kind)
		h.Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(a.Status)
		if r.Method != http.MethodHead {
			_, _ = w.Write(text)
		}
	})
}

const allowed = "GET, HEAD, OPTIONS"

func notAnswered(err error) string { return "This cannot be answered: " + err.Error() + "." }

// answered reports whether a method is one of those by which load balancers ask. HAProxy's own is OPTIONS.
func answered(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}
