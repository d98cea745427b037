package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// samplesOf reads how many samples a block of Prometheus holds.
func samplesOf(meta string) (int64, error) {
	text, err := os.ReadFile(meta)
	if err != nil {
		return 0, err
	}
	var m struct {
		Stats struct {
			NumSamples int64 `json:"numSamples"`
		} `json:"stats"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return 0, fmt.Errorf("%s: %w", meta, err)
	}
	return m.Stats.NumSamples, nil
}
