package web

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// writeResult writes a query's value in the form of Prometheus' API: numbers as text, times in seconds.
func writeResult(w io.Writer, v parser.Value) error {
	p := &pieces{w: w, b: make([]byte, 0, 2*piece)}
	p.b = fmt.Appendf(p.b, `{"status":"success","data":{"resultType":%q,"result":`, v.Type())
	var err error
	switch v := v.(type) {
	case promql.Matrix:
		err = p.matrix(v)
	case promql.Vector:
		err = p.vector(v)
	case promql.Scalar:
		p.b = appendPoint(p.b, v.T, v.V)
	case promql.String:
		var text []byte
		text, err = json.Marshal(v.V)
		p.b = append(append(append(appendTime(append(p.b, '['), v.T), ','), text...), ']')
	default:
		err = fmt.Errorf("cannot show a result of type %s", v.Type())
	}
	if err != nil {
		return err
	}
	p.b = append(p.b, "}}\n"...)
	return p.flush()
}

// pieces hands on what was appended to b, a piece at a time.
type pieces struct {
	w io.Writer
	b []byte
}

const piece = 32 << 10

func (p *pieces) flush() error {
	_, err := p.w.Write(p.b)
	p.b = p.b[:0]
	return err
}

func (p *pieces) flushFull() error {
	if len(p.b) < piece {
		return nil
	}
	return p.flush()
}

func (p *pieces) matrix(m promql.Matrix) (err error) {
	p.b = append(p.b, '[')
	for i, s := range m {
		if i > 0 {
			p.b = append(p.b, ',')
		}
		if p.b, err = appendMetric(p.b, s.Metric); err != nil {
			return err
		}
		p.b = append(p.b, `,"values":[`...)
		for j, f := range s.Floats {
			if j > 0 {
				p.b = append(p.b, ',')
			}
			p.b = appendPoint(p.b, f.T, f.F)
			if err := p.flushFull(); err != nil {
				return err
			}
		}
		p.b = append(p.b, `]}`...)
	}
	p.b = append(p.b, ']')
	return nil
}

func (p *pieces) vector(v promql.Vector) (err error) {
	p.b = append(p.b, '[')
	for i, s := range v {
		if i > 0 {
			p.b = append(p.b, ',')
		}
		if p.b, err = appendMetric(p.b, s.Metric); err != nil {
			return err
		}
		p.b = append(p.b, `,"value":`...)
		p.b = append(appendPoint(p.b, s.T, s.F), '}')
		if err := p.flushFull(); err != nil {
			return err
		}
	}
	p.b = append(p.b, ']')
	return nil
}

func appendMetric(b []byte, l labels.Labels) ([]byte, error) {
	m, err := json.Marshal(l)
	return append(append(b, `{"metric":`...), m...), err
}

func appendPoint(b []byte, t int64, v float64) []byte {
	b = appendTime(append(b, '['), t)
	b = append(b, ',', '"')
	switch {
	case math.IsInf(v, 1):
		b = append(b, "+Inf"...)
	default:
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return append(b, '"', ']')
}

// appendTime writes milliseconds as seconds with as many decimals as needed.
func appendTime(b []byte, ms int64) []byte {
	if ms%1000 == 0 {
		return strconv.AppendInt(b, ms/1000, 10)
	}
	return strconv.AppendFloat(b, float64(ms)/1000, 'f', 3, 64)
}
