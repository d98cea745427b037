package web

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// appendResult writes a query's value in the form of Prometheus' API: numbers as text, times in seconds.
func appendResult(b []byte, v parser.Value) ([]byte, error) {
	b = fmt.Appendf(b, `{"resultType":%q,"result":`, v.Type())
	var err error
	switch v := v.(type) {
	case promql.Matrix:
		b, err = appendMatrix(b, v)
	case promql.Vector:
		b, err = appendVector(b, v)
	case promql.Scalar:
		b = appendPoint(b, v.T, v.V)
	case promql.String:
		text, jerr := json.Marshal(v.V)
		b, err = append(append(append(appendTime(append(b, '['), v.T), ','), text...), ']'), jerr
	default:
		err = fmt.Errorf("cannot show a result of type %s", v.Type())
	}
	return append(b, '}'), err
}

func appendMatrix(b []byte, m promql.Matrix) ([]byte, error) {
	b = append(b, '[')
	for i, s := range m {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendMetric(b, s.Metric); err != nil {
			return b, err
		}
		b = append(b, `,"values":[`...)
		for j, p := range s.Floats {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendPoint(b, p.T, p.F)
		}
		b = append(b, `]}`...)
	}
	return append(b, ']'), nil
}

func appendVector(b []byte, v promql.Vector) ([]byte, error) {
	b = append(b, '[')
	for i, s := range v {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendMetric(b, s.Metric); err != nil {
			return b, err
		}
		b = append(b, `,"value":`...)
		b = append(appendPoint(b, s.T, s.F), '}')
	}
	return append(b, ']'), nil
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
